-- The names' order is that of their bytes, and any name will do: `bytea`, not `text`. A literal is written as for a text.
CREATE TABLE agent_sessions (
    -- Never used again, so that what is read of one session is not taken for another's.
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL,
    version bigint NOT NULL
);

-- An index cannot hold a very long id; its beginning gives the order, and the hash tells those apart that begin alike.
CREATE UNIQUE INDEX agent_sessions_id ON agent_sessions (substring(id, 1, 1000), sha256(id));

CREATE TABLE agent_events (
    session bigint NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    number bigint NOT NULL,
    event bytea NOT NULL,
    PRIMARY KEY (session, number)
);

-- Derived from the events: what is missing here is made again.
CREATE TABLE agent_snapshots (
    session bigint PRIMARY KEY REFERENCES agent_sessions ON DELETE CASCADE,
    version bigint NOT NULL,
    format integer NOT NULL,
    session_json bytea NOT NULL
);
