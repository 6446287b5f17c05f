//! Workers that are killed at any moment. `STORES_KILLS=50` kills more of them than the 5 of the suite.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use agent_core::{
    BoxError, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content,
    Result, Role, RunContext, Runner, Session, SessionStore, StopReason, Tool, ToolCall, ToolContext, Usage, tool_fn,
};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use serde_json::{Value, json};

use crate::{
    places::{Place, open},
    processes::another,
};

const SESSION: &str = "work";
const ITERATIONS: u32 = 5;
/// The iteration whose tool needs approval.
const PAYS: usize = 3;

/// A model without memory: the conversation tells it what is next, so that another process can go on with it.
struct Model;

impl ChatClient for Model {
    fn model(&self) -> &'static str {
        "model"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let iteration = request.messages.iter().filter(|message| message.role == Role::User).count();
        let asked = request.messages.last().is_some_and(|message| message.role == Role::User);
        let content = if asked {
            let name = if iteration == PAYS { "pay" } else { "count" };
            let id = format!("{name}-{iteration}");
            Content::ToolCall(ToolCall { id, name: name.to_owned(), arguments: json!({}) })
        } else {
            Content::Text(format!("done {iteration}"))
        };
        let response = ChatResponse {
            message: ChatMessage::new(Role::Assistant, [content]),
            usage: Usage::default(),
            stop: StopReason::Completed,
            model: "model".to_owned(),
        };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    }
}

/// A tool that writes its call into the ledger: what it does to the world.
fn tool(name: &str, ledger: &Path, needs_approval: bool) -> Box<dyn Tool> {
    let ledger = ledger.to_owned();
    let tool = tool_fn(name, "Makes an entry.", move |_: Value, cx: ToolContext| {
        let ledger = ledger.clone();
        async move {
            let mut file = OpenOptions::new().create(true).append(true).open(ledger)?;
            file.write_all(format!("{}\n", cx.call.id).as_bytes())?;
            // Between an effect and its record there is time to be killed.
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok::<_, BoxError>("entered")
        }
    });
    if needs_approval { Box::new(tool.needs_approval()) } else { Box::new(tool) }
}

/// One worker: runs the loop, as often as it has to be gone on with, and gives the approval.
pub(crate) async fn work(store: Arc<dyn SessionStore>, ledger: &str) {
    let ledger = PathBuf::from(ledger);
    let clerk = ChatAgent::new("clerk", Model, ChatAgentOptions::default())
        .tool(tool("count", &ledger, false))
        .tool(tool("pay", &ledger, true));
    let enough = evaluate_fn("enough", |cx| match cx.iteration {
        ITERATIONS => LoopEvaluation::Satisfied,
        _ => LoopEvaluation::feedback("again"),
    });
    let runner = Runner::new(LoopAgent::new("loop", clerk, LoopOptions::default()).evaluator(enough), store.clone());
    loop {
        let session = store.load(SESSION).await.unwrap().session;
        if LoopOutcome::of(&session, "loop").is_some_and(|outcome| outcome.passed()) {
            return;
        }
        let message = match session.open_approvals().first() {
            Some(call) => Some(ChatMessage::approve(&call.id)),
            None if session.messages().is_empty() => Some(ChatMessage::user("go")),
            None => None,
        };
        runner.run(SESSION, message, RunContext::default()).try_collect::<Vec<_>>().await.unwrap();
    }
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    stop: Option<StopReason>,
    feedback: Vec<Option<String>>,
    /// The calls that have a result.
    results: Vec<String>,
    last: Option<String>,
}

impl Outcome {
    fn of(session: &Session) -> Self {
        let outcome = LoopOutcome::of(session, "loop").unwrap();
        Self {
            stop: outcome.stop,
            feedback: outcome.iterations.iter().map(|iteration| iteration.feedback.clone()).collect(),
            results: results(session.messages()),
            last: session.messages().last().map(ChatMessage::text),
        }
    }
}

fn results(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().flat_map(ChatMessage::tool_results).map(|result| result.call_id.clone()).collect()
}

/// How often each call took effect.
fn effects(ledger: &Path) -> BTreeMap<String, u32> {
    let mut effects = BTreeMap::new();
    for call in fs::read_to_string(ledger).unwrap_or_default().lines() {
        *effects.entry(call.to_owned()).or_default() += 1;
    }
    effects
}

/// A run that is killed up to three times.
struct Disturbed {
    /// How often each call took effect and was killed before it was recorded.
    lost: BTreeMap<String, u32>,
    kills: u32,
}

async fn disturb(place: &Place, ledger: &Path, span: Duration, random: &mut fastrand::Rng) -> Disturbed {
    let store = open(&place.name).await;
    let mut disturbed = Disturbed { lost: BTreeMap::new(), kills: 0 };
    while disturbed.kills < 3 {
        let mut worker = another(&format!("work {}", ledger.display()), &place.name).spawn().unwrap();
        thread::sleep(span.mul_f64(random.f64()));
        worker.kill().unwrap(); // SIGKILL
        if worker.wait().unwrap().success() {
            break;
        }
        disturbed.kills += 1;
        let recorded = results(store.load(SESSION).await.unwrap().session.messages());
        let unrecorded = effects(ledger).into_iter().filter(|(call, _)| !recorded.contains(call));
        disturbed.lost.extend(unrecorded);
    }
    disturbed
}

async fn finish(place: &Place, ledger: &Path) -> Outcome {
    let output = another(&format!("work {}", ledger.display()), &place.name).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Outcome::of(&open(&place.name).await.load(SESSION).await.unwrap().session)
}

async fn end_as_if_undisturbed(place: Place) {
    let budget = env::var("STORES_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let undisturbed = finish(&place, &dir.path().join("undisturbed")).await;
    let span = began.elapsed();
    let calls = ["count-1", "count-2", "pay-3", "count-4", "count-5"].map(str::to_owned);
    let again = Some("again".to_owned());
    let expected = Outcome {
        stop: Some(StopReason::Completed),
        feedback: vec![again.clone(), again.clone(), again.clone(), again, None],
        results: calls.to_vec(),
        last: Some("done 5".to_owned()),
    };
    assert_eq!(undisturbed, expected);

    let seed = fastrand::u64(..);
    let (mut random, mut kills, mut twice) = (fastrand::Rng::with_seed(seed), 0, 0);
    for run in 0.. {
        if kills >= budget {
            break;
        }
        open(&place.name).await.delete(SESSION).await.unwrap();
        let ledger = dir.path().join(run.to_string());
        let disturbed = disturb(&place, &ledger, span, &mut random).await;
        kills += disturbed.kills;
        assert_eq!(finish(&place, &ledger).await, undisturbed, "seed {seed}");
        let once = calls.clone().map(|call| (call, 1));
        let mut expected = BTreeMap::from(once);
        for (call, lost) in disturbed.lost {
            twice += lost;
            *expected.get_mut(&call).unwrap() += lost;
        }
        assert_eq!(
            effects(&ledger),
            expected,
            "a call takes effect once more for each kill before its record, seed {seed}"
        );
    }
    println!("{kills} kills, {twice} of them between an effect and its record");
}

#[tokio::test]
async fn a_loop_over_a_jsonl_store_survives_kills() {
    end_as_if_undisturbed(Place::jsonl()).await;
}

#[tokio::test]
async fn a_loop_over_a_sqlite_store_survives_kills() {
    end_as_if_undisturbed(Place::sqlite()).await;
}

#[tokio::test]
async fn a_loop_over_a_postgres_store_survives_kills() {
    let Some(place) = Place::postgres() else { return };
    end_as_if_undisturbed(place).await;
}
