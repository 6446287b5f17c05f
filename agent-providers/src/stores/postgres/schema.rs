//! The tables, and their way to the newest form.

use agent_core::{Error, ErrorKind, Result};
use tokio_postgres::Client;

use super::database::Database;

/// The steps from nothing to the newest form.
const MIGRATIONS: &[&str] = &[include_str!("1.sql")];

/// The advisory lock under which processes migrate: "agen". Another program's use of the number would only make it wait.
const LOCK: i64 = 0x6167_656e;

/// Brings the tables to the newest form. Where they have it, no right to create any is needed.
pub(super) async fn migrate(client: &mut Client, database: &Database) -> Result<()> {
    let attempt = "create the tables of a session store";
    let failed = |error| database.failed(attempt, error);
    if is_current(client, database).await? {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    // Now no other process is at it; one may have been before.
    let version = version(transaction.client(), database).await?;
    let found = usize::try_from(version).unwrap_or_default();
    if found == 0 {
        let create = "CREATE TABLE agent_store (version integer NOT NULL); INSERT INTO agent_store VALUES (0)";
        transaction.batch_execute(create).await.map_err(failed)?;
    }
    for step in MIGRATIONS.get(found..).unwrap_or_default() {
        transaction.batch_execute(step).await.map_err(failed)?;
    }
    transaction.execute("UPDATE agent_store SET version = $1", &[&newest()]).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

async fn is_current(client: &Client, database: &Database) -> Result<bool> {
    let (found, newest) = (version(client, database).await?, newest());
    if found > newest {
        let context = format!(
            "open the session store in {database}: it has version {found} of the tables, and this program knows \
             {newest}; nothing was changed: use a newer program"
        );
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    Ok(found == newest)
}

/// The version of the tables; 0 if there are none.
async fn version(client: &Client, database: &Database) -> Result<i32> {
    let failed = |error| database.failed("look for the tables of a session store", error);
    // Not `to_regclass`, which may remember from before the lock that there is no such table.
    let there = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'agent_store' AND pg_table_is_visible(oid))";
    let there = client.query_one(there, &[]).await.map_err(failed)?;
    if !there.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client.query_one("SELECT max(version) FROM agent_store", &[]).await.map_err(failed)?;
    Ok(row.get::<_, Option<i32>>(0).unwrap_or_default())
}

fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("they are few")
}
