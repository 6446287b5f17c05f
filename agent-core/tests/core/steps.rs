use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatMessage, ChatResponse, ChatUpdate, Delta, Draft, Event, Limits, RunContext,
    SequentialAgent, Session, Spent, Step, Steps, StopReason, agent_fn,
    testing::{ScriptedAgent, ScriptedClient},
};
use futures::{FutureExt, StreamExt, stream};
use proptest::{collection::vec, prelude::*};
use uuid::Uuid;

use crate::support::{
    FnClient, Log, agent, asks, block_on, call, guarded, limited, noted, replies, session, show, text, tokens, told,
};

/// What an engine writes and reads back.
fn through_json(step: &Step) -> Step {
    serde_json::from_str(&serde_json::to_string(step).unwrap()).unwrap()
}

/// The next step, accepted.
async fn step(steps: &mut Steps) -> Step {
    let step = steps.next().await.unwrap();
    steps.accept(&step);
    step
}

/// Steps until the run ends, accepted.
async fn to_end(steps: &mut Steps) -> Vec<Step> {
    let mut taken = Vec::new();
    loop {
        taken.push(step(steps).await);
        if let Some(Step::Done { .. }) = taken.last() {
            return taken;
        }
    }
}

/// What another process does with a journal.
fn replay(steps: &mut Steps, journal: &[Step]) {
    for step in journal {
        steps.accept(step);
    }
}

fn event(step: &Step) -> &Event {
    match step {
        Step::Event { event, .. } => event,
        Step::Done { stop, .. } => panic!("not an event but an end: {stop}"),
    }
}

/// An agent that counts to this in the state `n`, one event a number, and notes each as it goes on after it.
fn counter(name: &'static str, to: u64, log: &Log) -> impl Agent + 'static {
    let log = log.clone();
    agent_fn(name, move |session, out| {
        let log = log.clone();
        Box::pin(async move {
            loop {
                let n = session.get::<u64>(name).unwrap_or_default();
                if n >= to {
                    return Ok(StopReason::Completed);
                }
                out.delta(Delta::Text(format!("{n}…"))).await;
                let draft = Draft::state(name, n + 1).usage(tokens(1, 1));
                out.record(session, draft).await;
                log.note(format!("{name} {}", n + 1));
            }
        })
    })
}

#[tokio::test]
async fn an_agent_does_not_move_until_its_step_is_accepted_and_the_next_is_asked_for() {
    let log = Log::default();
    let mut steps = Steps::new(counter("n", 2, &log), session("count"), RunContext::default());
    let first = steps.next().await.unwrap();
    assert_eq!(steps.next().await.unwrap(), first, "handed out again");
    assert_eq!((log.all(), steps.session().get::<u64>("n")), (vec![], None), "nothing is committed yet");
    steps.accept(&first);
    assert_eq!((log.all(), steps.session().get::<u64>("n")), (vec![], Some(1)));
    let second = step(&mut steps).await;
    assert_eq!((log.all(), event(&second).id > event(&first).id), (vec!["n 1".to_owned()], true));
    assert!(matches!(step(&mut steps).await, Step::Done { stop: StopReason::Completed, .. }));
}

#[tokio::test]
async fn steps_of_another_process_are_applied_and_nothing_runs() {
    let mut first = Steps::new(counter("n", 3, &Log::default()), session("count"), RunContext::default());
    let journal: Vec<Step> = to_end(&mut first).await.iter().map(through_json).collect();

    let never = ScriptedAgent::new("n");
    let mut second = Steps::new(never.clone(), session("count"), RunContext::default());
    replay(&mut second, &journal);
    assert_eq!((second.session(), never.runs()), (first.session(), 0));
}

#[tokio::test]
async fn a_run_is_one_run_across_processes() {
    let log = Log::default();
    let mut first = Steps::new(counter("n", 4, &log), session("count"), RunContext::default());
    let one = step(&mut first).await;
    let two = step(&mut first).await;
    drop(first);
    let mut second = Steps::new(counter("n", 4, &log), session("count"), RunContext::default());
    replay(&mut second, &[through_json(&one), through_json(&two)]);
    let rest = to_end(&mut second).await;
    assert_eq!(rest.len(), 3);
    assert!([&one, &two, &rest[0], &rest[1]].iter().all(|step| event(step).run == event(&one).run));
    assert_eq!(log.all(), ["n 1", "n 3", "n 4"], "what stands in the journal is not done again");
}

#[tokio::test]
async fn a_step_that_was_made_elsewhere_drops_the_run_that_is_under_way() {
    let log = Log::default();
    let mut here = Steps::new(counter("n", 3, &log), session("count"), RunContext::default());
    let one = step(&mut here).await;
    let mut there = Steps::new(counter("n", 3, &Log::default()), session("count"), RunContext::default());
    there.accept(&one);
    let theirs = step(&mut there).await;
    here.next().await.unwrap(); // not accepted: the other was faster
    here.accept(&theirs);
    assert_eq!(here.session(), there.session());
    assert_eq!(event(&step(&mut here).await).state, event(&step(&mut there).await).state);
}

/// Deltas are shown as they come, and are in no step.
#[tokio::test]
async fn deltas_are_shown_once_and_never_replayed() {
    let (seen, shown) = (Log::default(), Log::default());
    let steps = Steps::new(counter("n", 2, &Log::default()), session("count"), RunContext::default());
    let note = seen.clone();
    let mut steps = steps.on_delta(move |delta| note.note(format!("{delta:?}")));
    let journal = to_end(&mut steps).await;
    assert_eq!(seen.all(), [r#"Text("0…")"#, r#"Text("1…")"#]);

    let note = shown.clone();
    let again = Steps::new(ScriptedAgent::new("n"), session("count"), RunContext::default());
    let mut again = again.on_delta(move |delta| note.note(format!("{delta:?}")));
    replay(&mut again, &journal);
    assert_eq!(shown.all(), Vec::<String>::new());
}

#[tokio::test]
async fn an_approval_is_two_runs_of_the_same_steps() {
    let log = Log::default();
    let client = replies([asks([call("c1", "pay")]), asks([text("paid")])]);
    let mut steps =
        Steps::new(agent("clerk", &client).tool(guarded("pay", &log)), Session::new(), RunContext::default());
    let said = steps.say("pay").unwrap();
    steps.accept(&said);
    assert!(matches!(to_end(&mut steps).await.last(), Some(Step::Done { stop: StopReason::AwaitingApproval, .. })));
    assert_eq!(
        told(&steps.say(ChatMessage::approve("c2")).unwrap_err()),
        "Invalid: answer to `c2`, which fits no open approval request; waiting for one answer each: `c1`"
    );
    assert_eq!(log.all(), Vec::<String>::new());

    let said = steps.say(ChatMessage::approve("c1")).unwrap();
    assert_eq!(&*event(&said).author, Event::CALLER);
    steps.accept(&said);
    assert!(matches!(to_end(&mut steps).await.last(), Some(Step::Done { stop: StopReason::Completed, .. })));
    insta::assert_snapshot!(show(steps.session().messages()), @"
    user: pay
    assistant(clerk): call c1 pay
    assistant(clerk): may c1 pay?
    user: yes c1
    tool(clerk): c1 = done
    assistant(clerk): paid
    ");
    assert_eq!(log.all(), ["pay"]);
}

/// New words end a run that is under way; what was not accepted did not happen.
#[tokio::test]
async fn the_caller_may_speak_between_two_steps() {
    let mut steps = Steps::new(counter("n", 3, &Log::default()), session("count"), RunContext::default());
    step(&mut steps).await;
    steps.next().await.unwrap();
    let said = steps.say("go on").unwrap();
    steps.accept(&said);
    assert_eq!((steps.session().messages().len(), steps.session().get::<u64>("n")), (2, Some(1)));
    assert_eq!(to_end(&mut steps).await.len(), 3);
    assert_eq!(steps.session().get::<u64>("n"), Some(3));
}

/// A step that waits may be dropped: the run stands where it stood.
#[tokio::test(start_paused = true)]
async fn asking_for_a_step_may_be_given_up() {
    let asked = Log::default();
    let slow = {
        let asked = asked.clone();
        FnClient(move |_| {
            asked.note("asked");
            let answer = ChatResponse {
                message: ChatMessage::assistant("late"),
                usage: tokens(1, 1),
                stop: StopReason::Completed,
                model: "m".to_owned(),
            };
            let answer = async move {
                tokio::time::sleep(Duration::from_secs(9)).await;
                Ok(ChatUpdate::Done(answer))
            };
            stream::once(answer).boxed()
        })
    };
    let agent = ChatAgent::new("slow", slow, ChatAgentOptions::default());
    let mut steps = Steps::new(agent, session("go"), RunContext::default());
    assert!(steps.next().now_or_never().is_none());
    assert_eq!(event(&step(&mut steps).await).messages[0].text(), "late");
    assert_eq!(asked.all(), ["asked"]);
}

#[tokio::test]
async fn after_an_error_the_agent_goes_on_from_the_session() {
    let fails = AtomicBool::new(true);
    let agent = agent_fn("a", move |session, out| {
        let fails = fails.swap(false, SeqCst);
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("a step"))).await;
            if fails {
                Err(agent_core::Error::new(agent_core::ErrorKind::Provider, "ask"))
            } else {
                Ok(StopReason::Completed)
            }
        })
    });
    let mut steps = Steps::new(agent, session("go"), RunContext::default());
    step(&mut steps).await;
    assert_eq!(told(&steps.next().await.unwrap_err()), "Provider: ask");
    assert_eq!(to_end(&mut steps).await.len(), 2);
    assert_eq!(show(steps.session().messages()), "user: go\nassistant(a): a step\nassistant(a): a step");
}

/// Model calls, tool calls, tokens: a replay does not reset them.
#[tokio::test]
async fn limits_bind_the_run_across_processes() {
    let log = Log::default();
    let client = ["c1", "c2", "c3", "c4"]
        .iter()
        .fold(ScriptedClient::new(), |client, id| client.reply(asks([call(id, "look")]), tokens(5, 1)));
    let limits = Limits { model_calls: Some(3), tool_calls: Some(9), ..Limits::default() };
    let mut journal = vec![];
    let end = loop {
        // Each process makes one step and is gone.
        let agent = agent("a", &client).tool(noted("look", &log));
        let mut steps = Steps::new(agent, session("go"), limited(limits));
        replay(&mut steps, &journal);
        journal.push(through_json(&step(&mut steps).await));
        if let Some(Step::Done { stop, spent }) = journal.last() {
            break (*stop, *spent);
        }
    };
    assert_eq!((client.requests().len(), log.all().len()), (3, 3));
    let Spent { model_calls, tool_calls, tokens, wall: _ } = end.1;
    assert_eq!((end.0, model_calls, tool_calls, tokens), (StopReason::BudgetExhausted, 3, 3, 18));
}

/// Time counts while a run is at work, across processes, and not while it waits to be taken up.
#[tokio::test(start_paused = true)]
async fn time_stands_still_between_runs() {
    let slow = || {
        agent_fn("slow", |session, out| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(4)).await;
                out.record(session, Draft::message(ChatMessage::assistant("…"))).await;
                Ok(StopReason::AwaitingApproval)
            })
        })
    };
    let limits = Limits { wall: Some(Duration::from_secs(10)), ..Limits::default() };
    let mut steps = Steps::new(slow(), session("go"), limited(limits));
    let mut journal = to_end(&mut steps).await;
    assert_eq!(journal[1].spent().wall, Duration::from_secs(4));
    tokio::time::sleep(Duration::from_hours(1)).await;
    journal.extend(to_end(&mut steps).await);
    assert_eq!(journal[3].spent().wall, Duration::from_secs(8));

    let mut elsewhere = Steps::new(slow(), session("go"), limited(limits));
    replay(&mut elsewhere, &journal);
    assert_eq!(elsewhere.cx().check(), Ok(()));
    let interrupted = tokio::time::timeout(Duration::from_secs(3), elsewhere.cx().interrupted()).await;
    assert_eq!(interrupted.ok(), Some(StopReason::BudgetExhausted), "2 s are left");
    assert_eq!(elsewhere.cx().check(), Err(StopReason::BudgetExhausted));
}

/// Cancellation reaches the run through the context that the steps were made with, also after an end.
#[tokio::test]
async fn a_context_cancels_all_runs_of_its_steps() {
    let cx = RunContext::default();
    let client = ScriptedClient::new().says("one").says("two");
    let mut steps = Steps::new(agent("a", &client), session("go"), cx.clone());
    to_end(&mut steps).await;
    cx.cancel().cancel();
    assert!(matches!(step(&mut steps).await, Step::Done { stop: StopReason::Cancelled, .. }));
}

/// The events without what differs from run to run: ids and time.
fn plain(steps: &[Step]) -> Vec<(Option<Event>, Option<StopReason>)> {
    let unstamped = |event: &Event| Event { id: Uuid::nil(), run: Uuid::nil(), ..event.clone() };
    let plain = |step: &Step| match step {
        Step::Event { event, .. } => (Some(unstamped(event)), None),
        Step::Done { stop, .. } => (None, Some(*stop)),
    };
    steps.iter().map(plain).collect()
}

proptest! {
    /// However often a process is lost, and wherever: the journal is that of an undisturbed run.
    #[test]
    fn a_journal_that_is_cut_anywhere_grows_to_the_same_end(
        counts in (0..4_u64, 0..4_u64), cuts in vec(1..6_usize, 0..6)
    ) {
        let log = Log::default();
        let make = |log: &Log| {
            let sequence = SequentialAgent::new("s").then(counter("a", counts.0, log)).then(counter("b", counts.1, log));
            let steps = Steps::new(sequence.then(counter("last", 1, log)), session("go"), RunContext::default());
            // A sequence that has ended leaves no record of its own.
            steps.ended_by(|session| {
                let has_ended = session.get("last") == Some(1) && !session.state().contains_key("sequence:s");
                has_ended.then_some(StopReason::Completed)
            })
        };
        block_on(async {
            let mut whole = make(&Log::default());
            let undisturbed = to_end(&mut whole).await;

            let (mut journal, mut cuts): (Vec<Step>, _) = (vec![], cuts.into_iter());
            let ended = |journal: &[Step]| matches!(journal.last(), Some(Step::Done { .. }));
            let mut last = Session::new();
            while !ended(&journal) {
                let mut steps = make(&log);
                replay(&mut steps, &journal);
                for _ in 0..cuts.next().unwrap_or(usize::MAX) {
                    journal.push(through_json(&step(&mut steps).await));
                    if ended(&journal) {
                        break;
                    }
                }
                last = steps.session().clone();
            }
            prop_assert_eq!(plain(&journal), plain(&undisturbed));
            prop_assert_eq!(&last, whole.session());
            Ok(())
        })
        .map_err(|error: TestCaseError| error)?;
    }
}

#[test]
fn what_is_journaled_is_readable() -> Result<(), serde_json::Error> {
    let spent = Spent { model_calls: 1, tool_calls: 0, tokens: 7, wall: Duration::from_millis(1500) };
    let step = Step::Done { stop: StopReason::Completed, spent };
    insta::assert_snapshot!(
        serde_json::to_string(&step)?,
        @r#"{"done":{"stop":"completed","spent":{"model_calls":1,"tool_calls":0,"tokens":7,"wall":{"secs":1,"nanos":500000000}}}}"#
    );
    assert_eq!(through_json(&step), step);
    Ok(())
}
