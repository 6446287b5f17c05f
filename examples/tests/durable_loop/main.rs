//! The durable worker and its server as processes that are killed.
//!
//! They run where there is a Restate server: the program that `RESTATE_SERVER` names, or that of the npm package
//! `@restatedev/restate-server` below `target/peers`. `DURABLE_KILLS` is how many runs are disturbed, 3 by default.

mod site;
#[path = "../support/mod.rs"]
mod support;

use std::{
    env, fs, io,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use agent_core::Session;
use agent_loop::LoopOutcome;
use agent_providers::Status;
use site::{Killed, Site, free_port, post};
use support::{example, transcript};

/// What an undisturbed run asks of the model.
const CALLS: usize = 10;

/// How a turn ended, without times and tokens: the loop's end, what each iteration was told, and the boards.
fn outcome(session: &Session) -> (Option<agent_core::StopReason>, Vec<Option<String>>, Vec<String>) {
    let LoopOutcome { stop, iterations, .. } = LoopOutcome::of(session, "publication").unwrap();
    let told = iterations.into_iter().map(|iteration| iteration.feedback).collect();
    (stop, told, session.get("boards").unwrap())
}

/// Those lines that are there twice.
fn repeated(lines: &[String]) -> Vec<&String> {
    lines.iter().enumerate().filter(|(at, line)| lines[..*at].contains(line)).map(|(_, line)| line).collect()
}

/// The share of the n-th of many points that are spread over 0..1.
fn spread(n: u32) -> f64 {
    (f64::from(n) * 0.618_033_988_75).fract()
}

/// Runs one turn to its end. Meanwhile somebody disturbs the site, and tells what the notes about boards ended with at
/// each kill. Returns the outcome, and prints what was done twice.
fn disturbed(site: &mut Site, key: &str, disturb: impl FnOnce(&mut Site) -> Vec<Option<String>>) {
    site.start_worker(key);
    site.say(key);
    let last = disturb(site);
    let status = site.approve_to_the_end(key);
    assert_eq!((status.stop, &status.error), (Some(agent_core::StopReason::Completed), &None), "{key}");

    let boards = ["website", "app", "posters", "harbor", "radio"].map(str::to_owned).to_vec();
    let told = [4, 3, 2, 1].map(|left| Some(format!("{left} boards to go: the next one, please.")));
    let told = told.into_iter().chain([None]).collect();
    assert_eq!(outcome(&site.session(key)), (status.stop, told, boards), "{key}");

    // Twice only where the kill came between the effect and its record: then it was the last thing noted.
    let (boards, calls) = (site.notes(key, "boards"), site.notes(key, "calls"));
    for board in repeated(&boards) {
        assert!(last.iter().flatten().any(|at_kill| at_kill == board), "{key}: {board} was done again: {boards:#?}");
    }
    let again = calls.len().saturating_sub(CALLS);
    assert!(again <= last.len(), "{key}: {} kills, and {again} calls too many: {calls:#?}", last.len());
    assert!(calls.len() >= CALLS, "{key}: {calls:#?}");
    println!("{key}: {} kills; repeated: {again} model calls, {:?}", last.len(), repeated(&boards));
}

fn runs() -> u32 {
    env::var("DURABLE_KILLS").map_or(3, |runs| runs.parse().unwrap())
}

#[test]
fn a_worker_that_is_killed_at_any_moment_is_followed_by_one_that_ends_the_same() {
    let Some(mut site) = Site::open() else { return };
    let begin = Instant::now();
    disturbed(&mut site, "undisturbed", |_| vec![]);
    let span = begin.elapsed();
    let (mut killed, mut at_work) = (0, 0);
    for run in 0..runs() {
        let key = format!("run-{run}");
        disturbed(&mut site, &key, |site| {
            let approver = Approver::start(site.ingress, &key);
            thread::sleep(span.mul_f64(spread(run)));
            site.works = None;
            killed += 1;
            at_work += u32::from(site.notes(&key, "calls").len() < CALLS);
            let last = site.notes(&key, "boards").pop();
            site.start_worker(&key);
            site.approve_to_the_end(&key);
            drop(approver);
            vec![last]
        });
    }
    println!("{killed} kills in {span:?}, of which {at_work} before the last call of the model");
    assert!(at_work * 2 >= killed, "most kills come while the worker is at work");
}

/// Approves beside what happens to the worker, so that kills come before, at and after it.
struct Approver {
    is_needed: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Approver {
    fn start(ingress: u16, key: &str) -> Self {
        let (is_needed, path) = (Arc::new(AtomicBool::new(true)), format!("/agent/{key}/approve"));
        let needed = is_needed.clone();
        let thread = thread::spawn(move || {
            while needed.load(SeqCst) {
                let _ = post(ingress, &path, r#""call_3""#);
                thread::sleep(Duration::from_millis(20));
            }
        });
        Self { is_needed, thread: Some(thread) }
    }
}

impl Drop for Approver {
    fn drop(&mut self) {
        self.is_needed.store(false, SeqCst);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn server_and_worker_are_killed_in_turn_and_an_approval_waits() {
    let Some(mut site) = Site::open() else { return };
    disturbed(&mut site, "in-turn", |site| {
        let asked = site.question("in-turn");
        assert_eq!(asked.approvals[0].name, "print");
        let mut last = Vec::new();
        for at in 0..2 {
            site.serves = None;
            thread::sleep(Duration::from_millis(100));
            site.works = None;
            last.push(site.notes("in-turn", "boards").pop());
            site.start_worker("in-turn");
            site.start_server();
            assert_eq!(site.question("in-turn"), asked, "kill {at}");
        }
        assert_eq!(site.notes("in-turn", "boards").len(), 2, "nothing is done again while it waits");
        assert_eq!(site.notes("in-turn", "calls").len(), 5, "no iteration is repeated");

        // And once more while it is at work.
        let yes = |site: &Site| post(site.ingress, "/agent/in-turn/approve", r#""call_3""#).ok();
        site.until("server", yes);
        thread::sleep(Duration::from_millis(150));
        site.start_server();
        thread::sleep(Duration::from_millis(150));
        site.works = None;
        last.push(site.notes("in-turn", "boards").pop());
        site.start_worker("in-turn");
        last
    });
}

#[test]
fn a_turn_is_cancelled_or_refused_and_the_session_goes_on() {
    let Some(site) = Site::open() else { return };
    site.say("refused");
    let asked = site.question("refused");
    let (code, forged) = post(site.ingress, "/agent/refused/approve", r#""call_9""#).unwrap();
    assert_eq!(code, 404);
    assert!(forged.contains("answer to `call_9`, which does not wait for one; those that do: `call_3`"), "{forged}");
    assert_eq!(post(site.ingress, "/agent/refused/cancel", "").unwrap(), (200, "true".to_owned()));
    let cancelled = site.until("end", |site| site.status("refused").filter(|status| status.stop.is_some()));
    let stop = Some(agent_core::StopReason::Cancelled);
    assert_eq!(cancelled, Status { stop, error: None, ..asked });
    assert_eq!(post(site.ingress, "/agent/refused/cancel", "").unwrap(), (200, "false".to_owned()));

    // New words close what was open, and the loop begins anew.
    assert_eq!(post(site.ingress, "/agent/refused/say/send", r#""Go on.""#).unwrap().0, 202);
    let status = site.question("refused");
    assert_eq!(status.iterations[0].iteration, 1);
    let ended = site.approve_to_the_end("refused");
    assert_eq!(ended.stop, Some(agent_core::StopReason::Completed));

    // An answer that fits nothing fails the turn, and is told why.
    let (code, why) = post(
        site.ingress,
        "/agent/refused/say",
        r#"{"role":"user","contents":[{"approval_response":{"call_id":"x","approved":true}}]}"#,
    )
    .unwrap();
    assert_eq!(code, 400, "{why}");
    assert!(why.contains("fits no open approval request"), "{why}");
}

/// For the guide's page on scaling: `cargo test -p agent-examples --features durable --test durable_loop -- --ignored
/// --nocapture`.
#[test]
#[ignore = "it measures, and asserts nothing"]
fn what_a_step_costs() {
    let Some(mut site) = Site::open() else { return };
    // Words, two iterations of four events, the third's call and its question, the loop's end, the run's end.
    let steps = 14;
    let pause = Duration::from_millis(40); // of the stand-in for a model, 5 times
    site.start_worker("cost");
    let mut times: Vec<Duration> = (0..20)
        .map(|n| {
            let begin = Instant::now();
            site.say(&format!("one-{n}"));
            site.question(&format!("one-{n}"));
            begin.elapsed().saturating_sub(5 * pause) / steps
        })
        .collect();
    times.sort();
    println!("one session: a step takes {:?} at best, {:?} in the median", times[0], times[times.len() / 2]);

    let (before, sessions) = (size(&site.dir.path().join("server")), 200);
    let begin = Instant::now();
    (0..sessions).for_each(|n| site.say(&format!("many-{n}")));
    for n in 0..sessions {
        site.question(&format!("many-{n}"));
    }
    let rate = f64::from(sessions * steps) / begin.elapsed().as_secs_f64();
    let bytes = (size(&site.dir.path().join("server")) - before) / u64::from(sessions * steps);
    println!("{sessions} sessions at once: {rate:.0} steps a second, {bytes} bytes of disk a step, status included");
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return path.metadata().map_or(0, |file| file.len()) };
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}

#[test]
fn the_worker_says_how_to_reach_it_and_the_readme_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = example(env!("CARGO_BIN_EXE_durable_loop"));
    let port = free_port().to_string();
    let worker = command.args(["--port", &port, "--dir"]).arg(dir.path()).stdout(Stdio::piped());
    let mut worker = Killed(worker.spawn().unwrap());
    let mut printed = String::new();
    let mut read = io::BufReader::new(worker.0.stdout.take().unwrap());
    while !printed.contains("cancel ") {
        io::BufRead::read_line(&mut read, &mut printed).unwrap();
    }
    let printed = printed.replace(&port, "9080");
    assert!(include_str!("../../README.md").contains(printed.trim_end()), "not in README.md:\n{printed}");

    // Its port is taken now.
    let said = transcript(example(env!("CARGO_BIN_EXE_durable_loop")).args(["--port", &port, "--dir"]).arg(dir.path()));
    assert!(said.starts_with(&format!("--- stderr\nerror: serve on port {port} from ")), "{said}");
    assert!(said.ends_with("--- code 2\n"), "{said}");
}
