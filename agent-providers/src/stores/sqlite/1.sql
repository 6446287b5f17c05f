-- A session's key is never used again, so that what is read of one session is not taken for another's.
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    event BLOB NOT NULL,
    UNIQUE (session, number)
) STRICT;

-- Derived from the events: what is missing here is made again.
CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    version INTEGER NOT NULL,
    format INTEGER NOT NULL,
    session_json BLOB NOT NULL
) STRICT;
