//! Background tasks and `BackgroundDone`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    num::NonZeroU32,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    Agent, AgentExt, BoxError, ChatAgent, ChatAgentOptions, ChatMessage, Content, Draft, Error, ErrorKind, Event,
    JsonlStore, Limits, Role, RunContext, Runner, Session, SessionStore, StateChange, StopReason, ToolCall, Update,
    Updates, Usage, agent_fn,
    testing::{PairingClient, ScriptedAgent, ScriptedClient},
};
use agent_loop::{
    BackgroundTasks, ContextMode, LoopAgent, LoopContext, LoopEvaluation, LoopEvaluator, LoopOptions, LoopOutcome,
    TaskRecord, TaskStatus, Verdict, all_of, any_of, at_most, evaluate_fn, only_while,
};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

const HOUR: Duration = Duration::from_hours(1);

fn call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
}

fn start(agent: &str, request: &str) -> Content {
    call(&format!("{agent} {request}"), "task_start", json!({ "agent": agent, "request": request }))
}

/// Calls of one answer.
fn calls(calls: impl IntoIterator<Item = Content>) -> ChatMessage {
    ChatMessage::new(Role::Assistant, calls)
}

trait Replies {
    fn asks(self, asked: impl IntoIterator<Item = Content>) -> Self;
}

impl Replies for ScriptedClient {
    fn asks(self, asked: impl IntoIterator<Item = Content>) -> Self {
        self.reply(calls(asked), Usage::default())
    }
}

fn chief(client: &ScriptedClient, tasks: &BackgroundTasks) -> ChatAgent {
    let agent = ChatAgent::new("chief", PairingClient::new(client.clone()), ChatAgentOptions::default());
    tasks.tools().into_iter().fold(agent, ChatAgent::tool)
}

fn in_loop(client: &ScriptedClient, tasks: &BackgroundTasks, max_wait: Duration) -> LoopAgent {
    let options = LoopOptions { max_iterations: NonZeroU32::new(50).unwrap(), ..LoopOptions::default() };
    LoopAgent::new("work", chief(client, tasks), options).evaluator(tasks.done(max_wait))
}

/// An agent that sleeps as many seconds as it is told and says so; one told `never` does not wake up.
fn sleeper() -> impl Agent {
    agent_fn("sleeper", |session, out| {
        Box::pin(async move {
            let told = session.pending()[0].text();
            let Ok(seconds) = told.parse() else { return std::future::pending().await };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            out.record(session, Draft::message(ChatMessage::assistant(format!("slept {seconds}")))).await;
            Ok(StopReason::Completed)
        })
    })
}

fn sleepers() -> BackgroundTasks {
    BackgroundTasks::new().agent(sleeper())
}

fn feedback(session: &Session) -> Vec<String> {
    LoopOutcome::of(session, "work").unwrap().iterations.into_iter().filter_map(|i| i.feedback).collect()
}

fn results(session: &Session) -> Vec<String> {
    session.messages().iter().flat_map(ChatMessage::tool_results).map(agent_core::ToolResult::text).collect()
}

fn statuses(session: &Session) -> Vec<(u64, TaskStatus)> {
    BackgroundTasks::records(session).unwrap().into_iter().map(|task| (task.id, task.status)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_loop_waits_for_the_next_end_instead_of_spending_iterations() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .asks([start("sleeper", "30"), start("sleeper", "10"), start("sleeper", "10")])
        .says("All sleep.")
        .says("Two woke up.")
        .says("All are awake.");
    let (mut session, started) = (Session::new(), Instant::now());
    let response = in_loop(&client, &sleepers(), HOUR).ask(&mut session, "Sleep.").await?;
    assert_eq!((response.stop, response.text()), (StopReason::Completed, "All are awake.".to_owned()));
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    insta::assert_snapshot!(results(&session).join("\n"), @r"
    Task 1 runs.
    Task 2 runs.
    Task 3 runs.
    ");
    insta::assert_snapshot!(feedback(&session).join("\n---\n"), @r"
    Background tasks that ended:

    ## Task 2 (sleeper): done

    slept 10

    ## Task 3 (sleeper): done

    slept 10
    ---
    Background tasks that ended:

    ## Task 1 (sleeper): done

    slept 30
    ");
    let run = response.events[0].run;
    let record = |id: u64, seconds: &str| TaskRecord {
        id,
        agent: "sleeper".into(),
        request: seconds.into(),
        status: TaskStatus::Done,
        result: format!("slept {seconds}"),
        run,
    };
    assert_eq!(BackgroundTasks::records(&session).unwrap(), [record(1, "30"), record(2, "10"), record(3, "10")]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_task_that_hangs_is_named_after_the_longest_wait_and_can_be_cancelled() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .asks([start("sleeper", "never")])
        .says("It sleeps.")
        .calls("1", "task_cancel", json!({ "id": 1 }))
        .calls("2", "task_cancel", json!({ "id": 1 }))
        .calls("3", "task_cancel", json!({ "id": 9 }))
        .says("I stopped it.");
    let mut session = Session::new();
    let response = in_loop(&client, &sleepers(), Duration::from_mins(1)).ask(&mut session, "Sleep.").await?;
    assert_eq!(response.stop, StopReason::Completed);
    insta::assert_snapshot!(feedback(&session).join("\n---\n"), @r"
    These background tasks still run, and none ended within 60s:

    - task 1 (sleeper)

    Do something else meanwhile, wait with `task_wait`, or stop what hangs with `task_cancel`.
    ");
    insta::assert_snapshot!(results(&session).join("\n---\n"), @r"
    Task 1 runs.
    ---
    Background tasks that ended:

    ## Task 1 (sleeper): cancelled

    It was cancelled.
    ---
    Task 1 is cancelled already.
    ---
    there is no task 9
    ");
    assert_eq!(statuses(&session), [(1, TaskStatus::Cancelled)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn tools_tell_each_end_once() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .asks([start("sleeper", "5"), start("sleeper", "20")])
        .calls("list 1", "task_list", json!({}))
        .asks([call("wait 1", "task_wait", json!({})), call("wait 2", "task_wait", json!({}))])
        .calls("wait 3", "task_wait", json!({ "seconds": 1 }))
        .calls("read 1", "task_results", json!({}))
        .calls("read 2", "task_results", json!({ "ids": [1] }))
        .calls("read 3", "task_results", json!({ "ids": [7] }))
        .calls("list 2", "task_list", json!({}))
        .calls("wait 4", "task_wait", json!({}))
        .calls("wait 5", "task_wait", json!({}))
        .says("All are awake.");
    let mut session = Session::new();
    let response = in_loop(&client, &sleepers(), HOUR).ask(&mut session, "Sleep.").await?;
    assert_eq!((response.stop, feedback(&session)), (StopReason::Completed, vec![]));
    insta::assert_snapshot!(results(&session).join("\n---\n"), @r"
    Task 1 runs.
    ---
    Task 2 runs.
    ---
    - task 1 (sleeper): running. Request: 5
    - task 2 (sleeper): running. Request: 20
    ---
    Background tasks that ended:

    ## Task 1 (sleeper): done

    slept 5

    Still running: 2.
    ---
    Still running: 2.
    ---
    No task ended within 1s.
    ---
    Still running: 2.
    ---
    Background tasks that ended:

    ## Task 1 (sleeper): done

    slept 5
    ---
    no task 7 has a result to read here; see `task_list`
    ---
    - task 1 (sleeper): done. Request: 5
    - task 2 (sleeper): running. Request: 20
    ---
    Background tasks that ended:

    ## Task 2 (sleeper): done

    slept 20
    ---
    No task has an end to tell, and none runs.
    ");
    Ok(())
}

#[tokio::test]
async fn failures_are_told_as_such() -> Result<(), BoxError> {
    let panics = agent_fn("panics", |_, _| Box::pin(async { panic!("on purpose") }));
    let fails = agent_fn("fails", |_, _| {
        Box::pin(async { Err(Error::new(ErrorKind::Provider, "call the service").with_source("it is down")) })
    });
    let tasks = BackgroundTasks::new()
        .agent(panics)
        .agent(fails)
        .agent(ScriptedAgent::new("gives_up").turn(Draft::default(), StopReason::TurnLimit))
        .agent(ScriptedAgent::new("escalates").escalates());
    let names = ["panics", "fails", "gives_up", "escalates", "nobody"];
    let client = ScriptedClient::new().asks(names.map(|name| start(name, "go"))).calls("w", "task_wait", json!({}));
    let client = client.says("Oh.").says("Oh!").says("Oh!!").says("Oh!!!");
    let mut session = Session::new();
    let response = in_loop(&client, &tasks, HOUR).ask(&mut session, "Go.").await?;
    assert_eq!(response.stop, StopReason::Completed);
    let mut records = BackgroundTasks::records(&session).unwrap();
    let told: Vec<String> =
        records.drain(..).map(|task| format!("{} {}: {}", task.agent, task.status, task.result)).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    panics failed: It panicked.
    fails failed: It failed: call the service: it is down.
    gives_up failed: It did not finish: turn limit reached.
    escalates done: It said nothing.
    ");
    assert!(results(&session)[4].contains("there is no agent named `nobody`"), "{:?}", results(&session)[4]);
    Ok(())
}

#[tokio::test]
async fn the_tokens_of_tasks_are_reported_once_and_share_the_limits() -> Result<(), BoxError> {
    let usage = |input_tokens| Usage { input_tokens, ..Usage::default() };
    let scout = |name: &str, tokens| {
        let client = ScriptedClient::new().reply(ChatMessage::assistant("seen"), usage(tokens));
        ChatAgent::new(name, client, ChatAgentOptions::default())
    };
    let tasks = BackgroundTasks::new().agent(scout("a", 100)).agent(scout("b", 1_000));
    let client = ScriptedClient::new()
        .reply(calls([start("a", "look"), start("b", "look")]), usage(1))
        .calls("1", "task_wait", json!({}))
        .reply(ChatMessage::assistant("They look."), usage(10))
        .says("Seen.")
        .says("Seen.");
    let (mut session, cx) = (Session::new(), RunContext::default());
    session.push("Look.");
    let response = in_loop(&client, &tasks, HOUR).complete(&mut session, &cx).await?;
    assert_eq!((response.stop, response.usage), (StopReason::Completed, usage(1_111)));
    assert_eq!(cx.spent().tokens, 1_111);
    let recorded: Usage = LoopOutcome::of(&session, "work").unwrap().iterations.iter().map(|i| i.usage).sum();
    assert_eq!(recorded, usage(1_111));

    let client = ScriptedClient::new().asks([start("a", "look")]).says("It looks.").says("It could not.");
    let mut session = Session::new();
    session.push("Look.");
    let cx = RunContext::new(Limits { model_calls: Some(2), ..Limits::default() });
    let response = in_loop(&client, &tasks, HOUR).complete(&mut session, &cx).await?;
    assert_eq!((response.stop, cx.spent().model_calls), (StopReason::BudgetExhausted, 2), "the ceiling is exact");
    Ok(())
}

#[tokio::test]
async fn tasks_stop_with_their_run() -> Result<(), BoxError> {
    for soft in [true, false] {
        let alive = Arc::new(());
        let held = alive.clone();
        let holder = agent_fn("holder", move |_, _| {
            let held = held.clone();
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(StopReason::Completed)
            })
        });
        let tasks = BackgroundTasks::new().agent(holder);
        let client = ScriptedClient::new().asks([start("holder", "hold")]).says("It holds.");
        let cx = RunContext::default();
        let mut session = Session::new();
        session.push("Hold.");
        assert_eq!(chief(&client, &tasks).complete(&mut session, &cx).await?.stop, StopReason::Completed);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&alive), 3, "it works");
        if soft {
            cx.cancel().cancel();
        } else {
            drop(cx);
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Arc::strong_count(&alive), 2, "it stopped");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_ends_the_loop_cancelled_and_tells_nothing() -> Result<(), BoxError> {
    let client = ScriptedClient::new().asks([start("sleeper", "never")]).says("It sleeps.");
    let (mut session, cx) = (Session::new(), RunContext::default());
    session.push("Sleep.");
    let cancel = cx.cancel().clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    let response = in_loop(&client, &sleepers(), HOUR).complete(&mut session, &cx).await?;
    assert_eq!((response.stop, statuses(&session)), (StopReason::Cancelled, vec![(1, TaskStatus::Running)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_fresh_context_tells_no_task_twice() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .asks([start("sleeper", "1"), start("sleeper", "2")])
        .says("They sleep.")
        .says("One woke up.")
        .calls("1", "task_results", json!({ "ids": [1, 2] }))
        .says("Both woke up.");
    let tasks = sleepers();
    let options = LoopOptions { context: ContextMode::Fresh, ..LoopOptions::default() };
    let agent = LoopAgent::new("work", chief(&client, &tasks), options).evaluator(tasks.done(HOUR));
    let mut session = Session::new();
    let response = agent.ask(&mut session, "Sleep.").await?;
    assert_eq!((response.stop, ends(&session)), (StopReason::Completed, BTreeMap::from([(1, 1), (2, 1)])));
    assert_eq!(feedback(&session).len(), 2);
    assert!(results(&session)[0].contains("slept 1"), "what was told can be read again");
    Ok(())
}

/// Asks another evaluator, and then cancels the run.
struct ThenCancels<E>(E);

#[async_trait::async_trait]
impl<E: LoopEvaluator> LoopEvaluator for ThenCancels<E> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> agent_core::Result<LoopEvaluation> {
        self.0.evaluate(cx).await
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> agent_core::Result<Verdict> {
        let verdict = self.0.verdict(cx).await;
        cx.run.cancel().cancel();
        verdict
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_is_kept_with_its_record_if_the_run_is_cancelled_and_is_said_after_the_resume() -> Result<(), BoxError>
{
    let client = ScriptedClient::new().asks([start("sleeper", "1")]).says("It sleeps.").says("It woke up.");
    let tasks = sleepers();
    let agent = |evaluator: Arc<dyn LoopEvaluator>| {
        LoopAgent::new("work", chief(&client, &tasks), LoopOptions::default()).evaluator(evaluator)
    };
    let mut session = Session::new();
    session.push("Sleep.");
    let first = agent(Arc::new(ThenCancels(tasks.done(HOUR)))).complete(&mut session, &RunContext::default()).await?;
    assert_eq!((first.stop, statuses(&session)), (StopReason::Cancelled, vec![(1, TaskStatus::Done)]));
    let said = |session: &Session| session.messages().iter().filter(|m| m.text().contains("slept 1")).count();
    assert_eq!(said(&session), 0);

    let second = agent(Arc::new(tasks.done(HOUR))).complete(&mut session, &RunContext::default()).await?;
    assert_eq!((second.stop, said(&session)), (StopReason::Completed, 1));
    assert_eq!(ends(&session), BTreeMap::from([(1, 1)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn inside_other_evaluators_it_records_what_it_tells_and_nothing_else() -> Result<(), BoxError> {
    let tasks = sleepers();
    let done = || -> Arc<dyn LoopEvaluator> { Arc::new(tasks.done(HOUR)) };
    let never = || -> Arc<dyn LoopEvaluator> {
        Arc::new(evaluate_fn("never", |cx| match cx.iteration {
            1 => LoopEvaluation::feedback("Not yet."),
            _ => LoopEvaluation::Satisfied,
        }))
    };
    let combined: [(Arc<dyn LoopEvaluator>, TaskStatus); 5] = [
        (Arc::new(any_of("any", [done(), never()])), TaskStatus::Done),
        (Arc::new(all_of("all", [done(), never()])), TaskStatus::Done),
        (Arc::new(all_of("all", [never(), done()])), TaskStatus::Running),
        (Arc::new(at_most(1, done())), TaskStatus::Done),
        (Arc::new(only_while(|_| true, done())), TaskStatus::Done),
    ];
    for (at, (evaluator, status)) in combined.into_iter().enumerate() {
        let client = ScriptedClient::new().asks([start("sleeper", "1")]).says("It sleeps.").says("It woke up.");
        let agent = LoopAgent::new("work", chief(&client, &tasks), LoopOptions::default()).evaluator(evaluator);
        let mut session = Session::new();
        let response = agent.ask(&mut session, "Sleep.").await?;
        assert_eq!((response.stop, statuses(&session)), (StopReason::Completed, vec![(1, status)]), "case {at}");
        let told = session.messages().iter().any(|message| message.text().contains("slept 1"));
        assert_eq!(told, status == TaskStatus::Done, "case {at}: recorded is what was said");
    }
    Ok(())
}

/// How often the end of each task is in the state.
fn ends(session: &Session) -> BTreeMap<u64, u32> {
    let mut ends = BTreeMap::new();
    for change in session.state()["tasks"].as_array().unwrap() {
        if let Some(id) = change.pointer("/end/id") {
            *ends.entry(id.as_u64().unwrap()).or_default() += 1;
        }
    }
    ends
}

/// Whether an event records ends.
fn tells(event: &Event) -> bool {
    event.state.iter().any(|change| match change {
        StateChange::Append { key, value } => &**key == "tasks" && value.get("end").is_some(),
        StateChange::Set { .. } | StateChange::Remove { .. } => false,
    })
}

/// Starts 100 tasks, of which every second one ends before the process does.
fn first_life() -> LoopAgent {
    let requests = (0..100).map(|n| if n % 2 == 0 { "0".to_owned() } else { format!("never {n}") });
    let starts = requests
        .enumerate()
        .map(|(n, request)| call(&n.to_string(), "task_start", json!({ "agent": "sleeper", "request": request })));
    let client = ScriptedClient::new().asks(starts).says("They sleep.");
    let client = (0..20).fold(client, |client, _| client.says("Some woke up."));
    in_loop(&client, &sleepers(), HOUR)
}

/// Goes on, with agents that do not hang.
fn second_life() -> LoopAgent {
    let tasks = BackgroundTasks::new().agent(agent_fn("sleeper", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("awake"))).await;
            Ok(StopReason::Completed)
        })
    }));
    let client = (0..200).fold(ScriptedClient::new(), |client, _| client.says("Some woke up."));
    in_loop(&client, &tasks, HOUR)
}

/// Every task is done or lost, none is told twice, and lost are only those that hung.
fn check(session: &Session, crashed: &Session) {
    let records = BackgroundTasks::records(session).unwrap_or_default();
    let before = BackgroundTasks::records(crashed).unwrap_or_default();
    for task in &records {
        let known = before.iter().find(|known| known.id == task.id);
        let expected = match known.map(|known| known.status) {
            Some(TaskStatus::Running) => TaskStatus::Lost, // whatever it came to, nobody knows
            Some(told) => told,
            None => TaskStatus::Done,
        };
        assert_eq!(task.status, expected, "{task:?}");
    }
    if !records.is_empty() {
        assert_eq!(ends(session), records.iter().map(|task| (task.id, 1)).collect());
    }
    let said: Vec<String> = session.messages().iter().map(ChatMessage::text).collect();
    let said = said.join("\n");
    for task in &records {
        let heading = format!("## Task {} (", task.id);
        assert_eq!(said.matches(&heading).count(), 1, "task {} is told once", task.id);
    }
}

async fn next_event(run: &mut Updates<'_>) -> Result<Event, BoxError> {
    loop {
        match run.next().await.ok_or("the run ended")?? {
            Update::Event(event) => return Ok(event),
            Update::Delta(_) | Update::Done(_) => (),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_each_task_is_done_or_lost_and_none_is_told_twice() -> Result<(), BoxError> {
    let mut stages = std::collections::BTreeSet::new();
    for crash in (0..120).step_by(5).chain(100..108) {
        let mut session = Session::new();
        session.push("Sleep.");
        {
            let (agent, cx) = (first_life(), RunContext::default());
            let mut run = agent.run(&mut session, &cx);
            for _ in 0..crash {
                match tokio::time::timeout(Duration::from_mins(1), next_event(&mut run)).await {
                    Ok(event) => drop(event?),
                    Err(_) => break, // it waits for those that hang
                }
            }
        }
        let mut session: Session = serde_json::from_str(&serde_json::to_string(&session)?)?;
        let crashed = session.clone();
        let response = second_life().complete(&mut session, &RunContext::default()).await?;
        assert_eq!(response.stop, StopReason::Completed, "crash after {crash} events");
        check(&session, &crashed);
        let records = BackgroundTasks::records(&crashed).unwrap_or_default();
        stages.insert((records.len() == 100, records.iter().any(|task| task.status == TaskStatus::Done)));
    }
    assert_eq!(stages.into_iter().collect::<Vec<_>>(), [(false, false), (true, false), (true, true)], "all were met");
    Ok(())
}

const DIR: &str = "BACKGROUND_TEST_DIR";

#[tokio::test]
#[ignore = "the process that `a_killed_process_loses_no_end_and_tells_none_twice` kills"]
async fn victim() -> Result<(), BoxError> {
    let dir = std::env::var_os(DIR).ok_or("it is started by another test")?;
    let runner = Runner::new(first_life(), JsonlStore::open(Path::new(&dir))?);
    let mut run = runner.run("s", Some("Sleep.".into()), RunContext::default());
    while let Some(update) = run.next().await {
        if let Update::Event(event) = update? {
            println!("\nstored {}", if tells(&event) { "ends" } else { "a step" });
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_process_loses_no_end_and_tells_none_twice() -> Result<(), BoxError> {
    for steps in [40, usize::MAX] {
        let dir = tempfile::tempdir()?;
        let mut victim = Command::new(std::env::current_exe()?)
            .args(["--exact", "background::victim", "--ignored", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut stored = lines.filter(|line| line.starts_with("stored "));
        let reached = stored.by_ref().take(steps).any(|line| line == "stored ends");
        victim.kill()?; // SIGKILL on Unix
        victim.wait()?;
        assert_eq!(reached, steps == usize::MAX, "it was killed where it was meant to be");

        let store = JsonlStore::open(dir.path())?;
        let crashed = store.load("s").await?.session;
        assert!(BackgroundTasks::records(&crashed).unwrap().len() >= 38);
        let runner = Runner::new(second_life(), store);
        let end = runner.run("s", None, RunContext::default()).map(Result::unwrap).collect::<Vec<_>>().await.pop();
        assert_eq!(end, Some(Update::Done(StopReason::Completed)));
        check(&JsonlStore::open(dir.path())?.load("s").await?.session, &crashed);
    }
    Ok(())
}

#[test]
fn the_tools_say_what_they_are_for() {
    let tasks = BackgroundTasks::new().agent(ChatAgent::new(
        "scout",
        ScriptedClient::new(),
        ChatAgentOptions { description: "Looks at places.".into(), ..ChatAgentOptions::default() },
    ));
    let tools = tasks.tools();
    let specs: Vec<String> = tools
        .iter()
        .map(|tool| format!("{}: {}\n{}", tool.spec().name, tool.spec().description, tool.spec().parameters))
        .collect();
    insta::assert_snapshot!(specs.join("\n"), @r#"
    task_start: Starts an agent in the background and returns at once; you hear of its end later. Agents:
    - `scout`: Looks at places.
    {"properties":{"agent":{"description":"The agent's name.","type":"string"},"request":{"description":"What the agent is to do, with everything that it has to know.","type":"string"}},"required":["agent","request"],"type":"object"}
    task_list: Lists the background tasks and how they are.
    {"properties":{},"type":"object"}
    task_wait: Waits until a background task ends, and tells what it came to.
    {"properties":{"seconds":{"description":"The longest wait, in seconds; 60 if absent.","format":"uint64","minimum":0,"type":["integer","null"]}},"type":"object"}
    task_results: Tells what background tasks came to.
    {"properties":{"ids":{"description":"The tasks to read; if absent, all that ended and were not told yet.","items":{"format":"uint64","minimum":0,"type":"integer"},"type":["array","null"]}},"type":"object"}
    task_cancel: Stops a background task.
    {"properties":{"id":{"description":"The task to stop.","format":"uint64","minimum":0,"type":"integer"}},"required":["id"],"type":"object"}
    "#);
}
