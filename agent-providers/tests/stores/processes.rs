//! Other processes: this program again, with what to do in its environment.

use std::{
    env,
    process::{Command, Stdio},
};

use crate::{kills, places, stress};

const ROLE: &str = "AGENT_STORES_TEST_ROLE";
const PLACE: &str = "AGENT_STORES_TEST_PLACE";

/// This program again, doing what [`another_process`] has under this name, with the sessions of this place.
pub(crate) fn another(role: &str, place: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "processes::another_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PLACE, place).stdout(Stdio::piped());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the other tests, as another process"]
async fn another_process() {
    let (Ok(role), Ok(place)) = (env::var(ROLE), env::var(PLACE)) else { return };
    let store = places::open(&place).await;
    match role.split_once(' ') {
        Some(("append", rest)) => stress::append(&store, rest).await,
        Some(("work", rest)) => kills::work(store, rest).await,
        Some(_) | None => panic!("unknown role {role}"),
    }
}
