use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use agent_core::{
    Agent, AgentExt, AgentInfo, BoxError, ChatAgent, ChatAgentOptions, ChatMessage, ChatRequest, ChatResponse,
    ChatUpdate, Content, DuplicateCalls, Error, ErrorKind, Limits, RunContext, Session, StateChange, StopReason, Tool,
    ToolBudget, ToolContext, ToolOutput, ToolResult, Update, Updates, agent_fn, agent_tool, exit_loop,
    testing::{ScriptedAgent, ScriptedClient, assert_laws},
    tool_fn,
};
use futures::{FutureExt, StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    FnClient, Log, agent, agent_with, asks, call, constant, endless, invalid_call, limited, noted, replies, session,
    set, show, text, tokens, tool_call,
};

fn with_args(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(tool_call(id, name, arguments))
}

/// Runs an agent whose model makes these calls and then says "ok"; returns the session's results as text.
async fn results_of(tools: Vec<Box<dyn Tool>>, calls: Vec<Content>, cx: &RunContext) -> (String, StopReason) {
    let client = replies([asks(calls), ChatMessage::assistant("ok")]);
    let agent = tools.into_iter().fold(agent("a", &client), ChatAgent::tool);
    let mut session = session("go");
    let updates = assert_laws(&agent, &mut session, cx).await;
    let Some(Update::Done(stop)) = updates.last() else { unreachable!("the laws hold") };
    (results(&session), *stop)
}

fn results(session: &Session) -> String {
    show(session.messages().iter().filter(|message| message.tool_results().next().is_some()))
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    #[serde(default)]
    b: i64,
}

fn add() -> Box<dyn Tool> {
    Box::new(tool_fn("add", "Adds.", |args: Add, _: ToolContext| async move {
        args.a.checked_add(args.b).map(|sum| json!(sum)).ok_or_else(|| "the sum is too large".into())
    }))
}

#[test]
fn the_schema_of_a_function_is_the_one_of_its_arguments() {
    let expected = json!({
        "type": "object",
        "properties": {
            "a": {"description": "The first number.", "type": "integer", "format": "int64"},
            "b": {"type": "integer", "format": "int64", "default": 0},
        },
        "required": ["a"],
    });
    let spec = add().spec().clone();
    assert_eq!((spec.parameters, spec.name.as_str(), spec.description.as_str()), (expected, "add", "Adds."));
    assert!(!spec.needs_approval);
    let anything = noted("x", &Log::default());
    assert_eq!(anything.spec().parameters, json!({"type": "object", "properties": {}}));
    assert!(tool_fn("y", "", |_: Value, _| async { Ok("") }).needs_approval().spec().needs_approval);
}

#[tokio::test]
async fn whatever_a_tool_comes_to_is_a_result_that_the_model_reads() {
    let fails = tool_fn("fails", "", |_: Value, _| async {
        let source = std::io::Error::other("the disk is full");
        Err::<String, BoxError>(Error::new(ErrorKind::Store, "write the note").with_source(source).into())
    });
    let refuses = constant("refuses", ToolOutput::error("not today"));
    let calls = vec![
        with_args("c1", "add", json!({"a": 1, "b": 2})),
        with_args("c2", "add", json!({"a": i64::MAX, "b": 1})),
        with_args("c3", "add", json!({"b": 2})),
        with_args("c4", "add", json!("text")),
        with_args("c5", "add", Value::Null),
        with_args("c10", "add", json!({"a": "one"})),
        call("c6", "fails"),
        call("c7", "refuses"),
        call("c8", "sub"),
        invalid_call("c9", "add"),
    ];
    let (results, stop) = results_of(vec![add(), Box::new(fails), refuses], calls, &RunContext::default()).await;
    assert_eq!(stop, StopReason::Completed);
    insta::assert_snapshot!(results, @r#"
    tool(a): c1 = 3
    tool(a): c2 ! the sum is too large
    tool(a): c3 ! invalid arguments: missing field `a`
    tool(a): c4 ! invalid arguments: invalid type: string "text", expected struct Add
    tool(a): c5 ! invalid arguments: missing field `a`
    tool(a): c10 ! invalid arguments: a: invalid type: string "one", expected i64
    tool(a): c6 ! write the note: the disk is full
    tool(a): c7 ! not today
    tool(a): c8 ! there is no tool named `sub`; there are: `add`, `fails`, `refuses`
    tool(a): c9 ! not run: the arguments of `add` could not be read: it was cut
    "#);
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn arguments_that_are_null_are_an_empty_object() {
    let tool = tool_fn("t", "", |args: Value, _| async move { Ok(format!("args {args}")) });
    let nothing = tool_fn("n", "", |_: Nothing, _| async { Ok("nothing needed") });
    let calls = vec![with_args("c1", "t", Value::Null), with_args("c2", "n", Value::Null)];
    let (results, _) = results_of(vec![Box::new(tool), Box::new(nothing)], calls, &RunContext::default()).await;
    insta::assert_snapshot!(results, @"
    tool(a): c1 = args {}
    tool(a): c2 = nothing needed
    ");
}

#[tokio::test]
async fn an_agent_without_tools_says_so() {
    let (results, _) = results_of(vec![], vec![call("c1", "add")], &RunContext::default()).await;
    insta::assert_snapshot!(results, @"tool(a): c1 ! there is no tool named `add`; there are none");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_dropped() {
    let slow = tool_fn("slow", "", |_: Value, _| async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        Ok("too late")
    });
    let quick = tool_fn("quick", "", |_: Value, _| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok("in time")
    });
    let limit = Duration::from_secs(2);
    let tools: Vec<Box<dyn Tool>> = vec![Box::new(slow.timeout(limit)), Box::new(quick.timeout(limit))];
    let (results, _) = results_of(tools, vec![call("c1", "slow"), call("c2", "quick")], &RunContext::default()).await;
    insta::assert_snapshot!(results, @"
    tool(a): c1 ! timed out after 2s
    tool(a): c2 = in time
    ");
}

#[tokio::test]
async fn values_become_results() {
    assert_eq!(ToolOutput::from(json!("plain")), ToolOutput::text("plain"));
    assert_eq!(ToolOutput::from(json!({"a": 1})), ToolOutput::text("{\"a\":1}"));
    assert_eq!(ToolOutput::json(&[1, 2]), ToolOutput::text("[1,2]"));
    assert_eq!(ToolOutput::from("x"), ToolOutput::from("x".to_owned()));
    let full = ToolOutput::error("no").set("k", 1).append("l", 2).escalate().end_turn();
    let expected = ToolOutput {
        contents: vec![text("no")],
        is_error: true,
        state: vec![set("k", 1), StateChange::Append { key: "l".into(), value: json!(2) }],
        usage: None,
        escalate: true,
        end_turn: true,
    };
    assert_eq!(full, expected);
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_up_to_the_limit_and_their_results_come_in_call_order() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (running.clone(), most.clone());
    let tool = tool_fn("t", "", move |args: Value, _| {
        let (running, most) = counts.clone();
        async move {
            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::time::sleep(Duration::from_secs(args["s"].as_u64().unwrap())).await;
            running.fetch_sub(1, SeqCst);
            Ok(args.to_string())
        }
    });
    let calls = (0..7).map(|i| with_args(&format!("c{i}"), "t", json!({"s": 10 - i})));
    let client = replies([asks(calls), ChatMessage::assistant("ok")]);
    let options = ChatAgentOptions { tool_concurrency: NonZeroUsize::new(3).unwrap(), ..ChatAgentOptions::default() };
    let agent = agent_with("a", &client, options).tool(tool);
    let mut session = session("go");
    assert_laws(&agent, &mut session, &RunContext::default()).await;
    assert_eq!((most.load(SeqCst), running.load(SeqCst)), (3, 0));
    let ids = session.messages().iter().flat_map(|m| m.tool_results().map(|r| r.call_id.clone()).collect::<Vec<_>>());
    assert!(ids.eq((0..7).map(|i| format!("c{i}"))));
}

#[tokio::test(start_paused = true)]
async fn state_of_parallel_calls_is_all_kept_and_for_one_key_the_later_call_wins() {
    let tool = tool_fn("t", "", |args: Value, cx: ToolContext| async move {
        let (wait, seen) = (args["wait"].as_u64().unwrap(), cx.session.state().len());
        tokio::time::sleep(Duration::from_secs(wait)).await;
        Ok(ToolOutput::text(format!("saw {seen} keys")).set("last", wait).append("all", wait))
    });
    let calls = [3, 1, 2].map(|wait| with_args(&format!("c{wait}"), "t", json!({"wait": wait})));
    let client = replies([asks(calls), ChatMessage::assistant("ok")]);
    let agent = agent("a", &client).tool(tool);
    let mut session = session("go");
    assert_laws(&agent, &mut session, &RunContext::default()).await;
    assert_eq!(Value::Object(session.state().clone()), json!({"last": 2, "all": [3, 1, 2]}));
    insta::assert_snapshot!(results(&session), @"
    tool(a): c3 = saw 0 keys
    tool(a): c1 = saw 0 keys
    tool(a): c2 = saw 0 keys
    ");
}

#[tokio::test]
async fn the_escalation_of_one_of_several_calls_counts_and_the_others_results_are_kept() {
    let log = Log::default();
    let client = replies([asks([call("c1", "look"), call("c2", "exit_loop"), call("c3", "look")])]);
    let agent = agent("a", &client).tool(noted("look", &log)).tool(exit_loop());
    let mut session = session("go");
    let response = agent.complete(&mut session, &RunContext::default()).await.unwrap();
    assert_eq!((response.stop, log.all().len(), client.requests().len()), (StopReason::Escalated, 2, 1));
    assert_eq!(response.events.iter().map(|e| e.escalate).collect::<Vec<_>>(), [false, false, true, false]);
    insta::assert_snapshot!(results(&session), @"
    tool(a): c1 = done
    tool(a): c2 = the loop ends
    tool(a): c3 = done
    ");
}

#[tokio::test]
async fn tokens_of_a_tool_are_in_its_results_event() {
    let output = ToolOutput { usage: Some(tokens(3, 4)), ..ToolOutput::text("ok") };
    let client = replies([asks([call("c1", "t"), call("c2", "t")]), ChatMessage::assistant("ok")]);
    let response = agent("a", &client).tool(constant("t", output)).ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(response.usage, tokens(6, 8));
    assert_eq!(response.events[1].usage, Some(tokens(3, 4)));
}

#[tokio::test]
async fn a_tool_sees_its_call_the_session_and_the_run() {
    let tool = tool_fn("t", "", |_: Value, cx: ToolContext| async move {
        Ok(format!("{} {} {} {}", cx.call.id, cx.call.name, cx.session.messages().len(), cx.run.spent().tool_calls))
    });
    let (results, _) = results_of(vec![Box::new(tool)], vec![call("c1", "t")], &RunContext::default()).await;
    insta::assert_snapshot!(results, @"tool(a): c1 = c1 t 2 1");
}

#[tokio::test]
async fn a_result_may_hold_more_than_text() {
    let contents = vec![text("a"), Content::Data { mime_type: "image/png".into(), data: vec![1] }];
    let output = ToolOutput { contents: contents.clone(), ..ToolOutput::default() };
    let client = replies([asks([call("c1", "t")]), ChatMessage::assistant("ok")]);
    agent("a", &client).tool(constant("t", output)).ask(&mut Session::new(), "go").await.unwrap();
    let seen = client.requests()[1].messages[2].tool_results().next().unwrap().clone();
    assert_eq!(seen, ToolResult { call_id: "c1".into(), contents, is_error: false });
}

#[tokio::test]
async fn a_budget_of_calls_skips_what_is_too_much_and_the_run_goes_on() {
    let log = Log::default();
    let client = replies([
        asks(["1", "2", "3"].map(|id| call(id, "look"))),
        asks(["4", "5", "6"].map(|id| call(id, "act"))),
        ChatMessage::assistant("ok"),
        asks([call("7", "look")]),
        ChatMessage::assistant("ok"),
    ]);
    let agent =
        agent("a", &client).tool(noted("look", &log)).tool(noted("act", &log)).hook(ToolBudget::new(4).tool("look", 2));
    let mut session = session("go");
    let cx = RunContext::default();
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Completed);
    assert_eq!((log.all(), cx.spent().tool_calls), (["look", "look", "act", "act"].map(str::to_owned).to_vec(), 4));
    insta::assert_snapshot!(results(&session), @"
    tool(a): 1 = done
    tool(a): 2 = done
    tool(a): 3 ! skipped: `look` may be called 2× in this run, and was
    tool(a): 4 = done
    tool(a): 5 = done
    tool(a): 6 ! skipped: all 4 tool calls of this run are used; answer with what you know
    ");
    agent.ask(&mut session, "again").await.unwrap();
    assert_eq!(log.all().len(), 5, "each run has a budget of its own");
}

#[tokio::test]
async fn a_call_like_an_earlier_one_of_the_run_is_skipped() {
    let log = Log::default();
    let args = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let calls = [
        with_args("1", "look", args(r#"{"a": 1, "b": {"x": 1, "y": [2, 3]}}"#)),
        with_args("2", "look", args(r#"{"b": {"y": [2, 3], "x": 1}, "a": 1}"#)),
        with_args("3", "look", args(r#"{"a": 1, "b": {"x": 1, "y": [3, 2]}}"#)),
        with_args("4", "act", args(r#"{"a": 1, "b": {"x": 1, "y": [2, 3]}}"#)),
    ];
    let again = calls[0].clone();
    let client = replies([asks(calls), ChatMessage::assistant("ok"), asks([again]), ChatMessage::assistant("ok")]);
    let agent = agent("a", &client).tool(noted("look", &log)).tool(noted("act", &log)).hook(DuplicateCalls::default());
    let mut session = session("go");
    agent.complete(&mut session, &RunContext::default()).await.unwrap();
    assert_eq!(log.all().len(), 3);
    insta::assert_snapshot!(results(&session), @"
    tool(a): 1 = done
    tool(a): 2 ! skipped: `look` was already called with these arguments; use its earlier result
    tool(a): 3 = done
    tool(a): 4 = done
    ");
    agent.ask(&mut session, "again").await.unwrap();
    assert_eq!(log.all().len(), 4, "another run may look again");
}

#[tokio::test]
async fn equal_calls_may_be_allowed_more_than_once() {
    let log = Log::default();
    let client = replies([asks(["1", "2", "3"].map(|id| call(id, "look"))), ChatMessage::assistant("ok")]);
    let agent = agent("a", &client).tool(noted("look", &log)).hook(DuplicateCalls::allow(2));
    agent.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(log.all(), ["look", "look"]);
}

#[tokio::test]
async fn out_of_tool_calls_each_call_has_a_result_and_the_run_ends() {
    let log = Log::default();
    let client = replies([asks(["1", "2", "3"].map(|id| call(id, "look"))), ChatMessage::assistant("ok")]);
    let agent = agent("a", &client).tool(noted("look", &log));
    let cx = limited(Limits { tool_calls: Some(1), ..Limits::default() });
    let mut session = session("go");
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!((log.all().len(), client.requests().len()), (1, 1));
    insta::assert_snapshot!(results(&session), @"
    tool(a): 1 = done
    tool(a): 2 ! not run: budget exhausted
    tool(a): 3 ! not run: budget exhausted
    ");
    assert_eq!(agent.complete(&mut session, &RunContext::default()).await.unwrap().text(), "ok");
    assert_eq!(log.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn time_and_cancellation_interrupt_pending_tools_and_leave_no_call_without_a_result() {
    let mut told = vec![];
    for cancels in [false, true] {
        let log = Log::default();
        let calls = [call("1", "look"), call("2", "endless"), call("3", "look"), call("4", "endless")];
        let client = replies([asks(calls), ChatMessage::assistant("ok")]);
        let options =
            ChatAgentOptions { tool_concurrency: NonZeroUsize::new(2).unwrap(), ..ChatAgentOptions::default() };
        let agent = agent_with("a", &client, options).tool(noted("look", &log)).tool(endless("endless"));
        let cx = limited(Limits { wall: Some(Duration::from_secs(9)), ..Limits::default() });
        let mut session = session("go");
        let (response, ()) = tokio::join!(agent.complete(&mut session, &cx), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if cancels {
                cx.cancel().cancel();
            }
        });
        let stop = response.unwrap().stop;
        assert_eq!(stop, if cancels { StopReason::Cancelled } else { StopReason::BudgetExhausted });
        told.push(results(&session));
        assert_eq!(agent.complete(&mut session, &RunContext::default()).await.unwrap().text(), "ok");
    }
    insta::assert_snapshot!(told.join("\n\n"), @"
    tool(a): 1 = done
    tool(a): 2 ! interrupted while it ran: budget exhausted; it may have taken effect
    tool(a): 3 = done
    tool(a): 4 ! not run: budget exhausted

    tool(a): 1 = done
    tool(a): 2 ! interrupted while it ran: cancelled; it may have taken effect
    tool(a): 3 = done
    tool(a): 4 ! not run: cancelled
    ");
}

#[tokio::test]
async fn cancelled_between_the_answer_and_its_calls_none_of_them_runs() {
    let log = Log::default();
    let client = replies([asks([call("1", "look"), call("2", "look")]), ChatMessage::assistant("ok")]);
    let agent = agent("a", &client).tool(noted("look", &log));
    let mut session = session("go");
    let cx = RunContext::default();
    let mut run = agent.run(&mut session, &cx);
    run.next().await.unwrap().unwrap();
    cx.cancel().cancel();
    let stop = agent_core::AgentResponse::collect(run).await.unwrap().stop;
    assert_eq!((stop, log.all().len()), (StopReason::Cancelled, 0));
    insta::assert_snapshot!(results(&session), @"
    tool(a): 1 ! not run: cancelled
    tool(a): 2 ! not run: cancelled
    ");
    assert_eq!(agent.complete(&mut session, &RunContext::default()).await.unwrap().text(), "ok");
}

#[tokio::test]
async fn an_agent_is_a_tool_with_a_session_of_its_own() {
    let inner_client = replies([ChatMessage::assistant("inner text")]);
    let options = ChatAgentOptions { description: "Helps.".into(), ..ChatAgentOptions::default() };
    let tool = agent_tool(agent_with("helper", &inner_client, options));
    assert_eq!((tool.spec().name.as_str(), tool.spec().description.as_str()), ("helper", "Helps."));
    let property =
        json!({"type": "string", "description": "What the agent is to do, with everything that it has to know."});
    assert_eq!(tool.spec().parameters["properties"], json!({"request": property}));
    assert_eq!(tool.spec().parameters["required"], json!(["request"]));

    let client =
        replies([asks([with_args("c1", "helper", json!({"request": "help me"}))]), ChatMessage::assistant("{}")]);
    let outer = agent("outer", &client).tool(tool);
    let cx = RunContext::default().with_format(agent_core::Format::of::<u32>());
    let mut session = session("go");
    outer.complete(&mut session, &cx).await.unwrap();
    insta::assert_snapshot!(results(&session), @"tool(outer): c1 = inner text");
    insta::assert_snapshot!(crate::support::seen(&inner_client, 0), @"user: help me");
    assert_eq!(cx.spent().model_calls, 3, "limits are shared");
    let formats = [&client, &inner_client].map(|client| client.requests()[0].options.format.clone());
    assert_eq!(formats, [agent_core::Format::of::<u32>(), agent_core::Format::Text], "the format is not inherited");
}

#[tokio::test]
async fn how_an_agent_ends_is_how_its_tool_answers_and_its_tokens_are_reported_in_any_case() {
    let draft = || agent_core::Draft::message(ChatMessage::assistant("said")).usage(tokens(1, 2));
    let ends = [
        StopReason::Completed,
        StopReason::Escalated,
        StopReason::AwaitingApproval,
        StopReason::Length,
        StopReason::BudgetExhausted,
        StopReason::IterationLimit,
    ];
    let fails = agent_fn("x", move |session, out| {
        async move {
            out.record(session, draft()).await;
            Err(Error::new(ErrorKind::Provider, "ask the model").with_source("overloaded"))
        }
        .boxed()
    });
    let mut agents: Vec<Box<dyn Agent>> =
        ends.into_iter().map(|stop| Box::new(ScriptedAgent::new("x").turn(draft(), stop)) as Box<dyn Agent>).collect();
    agents.push(Box::new(fails));
    let mut told = vec![];
    for inner in agents {
        let client = replies([asks([with_args("c1", "x", json!({"request": "r"}))]), ChatMessage::assistant("ok")]);
        let outer = agent("outer", &client).tool(agent_tool(inner));
        let mut session = session("go");
        let response = outer.complete(&mut session, &RunContext::default()).await.unwrap();
        assert_eq!((response.stop, response.usage), (StopReason::Completed, tokens(1, 2)));
        told.push(results(&session));
    }
    insta::assert_snapshot!(told.join("\n"), @"
    tool(outer): c1 = said
    tool(outer): c1 = said
    tool(outer): c1 ! agent `x` did not finish: awaiting approval
    tool(outer): c1 ! agent `x` did not finish: output limit reached
    tool(outer): c1 ! agent `x` did not finish: budget exhausted
    tool(outer): c1 ! agent `x` did not finish: iteration limit reached
    tool(outer): c1 ! agent `x` failed: ask the model: overloaded
    ");
}

#[tokio::test]
async fn an_agent_tool_over_a_malformed_agent_is_an_error_result() {
    /// Ends so often.
    struct Ends(AgentInfo, usize);
    impl Agent for Ends {
        fn info(&self) -> &AgentInfo {
            &self.0
        }
        fn run<'a>(&'a self, _: &'a mut Session, _: &'a RunContext) -> Updates<'a> {
            stream::repeat_with(|| Ok(Update::Done(StopReason::Completed))).take(self.1).boxed()
        }
    }
    let mut told = vec![];
    for times in [0, 2] {
        let request = with_args("c1", "x", json!({"request": "r"}));
        let tool = agent_tool(Ends(AgentInfo::named("x"), times));
        told.push(results_of(vec![Box::new(tool)], vec![request], &RunContext::default()).await.0);
    }
    insta::assert_snapshot!(told.join("\n"), @"
    tool(a): c1 ! agent `x` failed: a run stopped without saying how it ended
    tool(a): c1 ! agent `x` failed: a run went on after it had ended (completed)
    ");
}

#[tokio::test]
async fn a_limit_inside_an_agent_tool_is_the_outer_runs_limit_too() {
    let log = Log::default();
    let inner = replies([asks([call("i1", "look")]), asks([call("i2", "look")]), ChatMessage::assistant("inner")]);
    let client = replies([asks([with_args("c1", "inner", json!({"request": "r"}))]), ChatMessage::assistant("ok")]);
    let outer = agent("outer", &client).tool(agent_tool(agent("inner", &inner).tool(noted("look", &log))));
    let mut session = session("go");
    let cx = limited(Limits { tool_calls: Some(2), ..Limits::default() });
    let response = outer.complete(&mut session, &cx).await.unwrap();
    // One call is the agent tool itself; the inner agent may look once.
    assert_eq!((log.all().len(), cx.spent().tool_calls, response.text().as_str()), (1, 2, "ok"));
    insta::assert_snapshot!(results(&session), @"tool(outer): c1 ! agent `inner` did not finish: budget exhausted");
}

#[tokio::test]
async fn every_pointer_to_a_tool_or_a_client_is_what_it_points_to() {
    let log = Log::default();
    let shared: Arc<dyn Tool> = Arc::from(noted("look", &log));
    let client: Arc<dyn agent_core::ChatClient> =
        Arc::new(ScriptedClient::new().calls("c1", "look", json!({})).says("ok"));
    let agent = agent_core::ChatAgent::new("a", client.clone(), ChatAgentOptions::default()).tool(shared.clone());
    assert_eq!(agent.ask(&mut Session::new(), "go").await.unwrap().text(), "ok");
    assert_eq!((log.all(), client.model(), shared.spec().name.as_str()), (vec!["look".to_owned()], "scripted", "look"));
}

/// An agent that is known only later: for agents that use themselves.
struct Later(AgentInfo, Arc<std::sync::OnceLock<ChatAgent>>);

impl Agent for Later {
    fn info(&self) -> &AgentInfo {
        &self.0
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        self.1.get().unwrap().run(session, cx)
    }
}

#[tokio::test]
async fn an_agent_that_is_its_own_tool_comes_to_an_end() {
    // Asks itself, and says what it was told.
    let model = FnClient(|request: ChatRequest| {
        let last = request.messages.last().unwrap();
        let message = match last.tool_results().next() {
            Some(result) => ChatMessage::assistant(result.text()),
            None => asks([Content::ToolCall(tool_call("1", "self", json!({ "request": "go on" })))]),
        };
        let (usage, stop, model) = (tokens(0, 0), StopReason::Completed, "m".to_owned());
        stream::iter([Ok(ChatUpdate::Done(ChatResponse { message, usage, stop, model }))]).boxed()
    });
    let cell = Arc::new(std::sync::OnceLock::new());
    let later = Later(AgentInfo::named("self"), cell.clone());
    let agent = cell.get_or_init(|| ChatAgent::new("self", model, ChatAgentOptions::default()).tool(agent_tool(later)));
    let cx = RunContext::default();
    let response = agent.complete(&mut session("go"), &cx).await.unwrap();
    assert_eq!((response.stop, cx.spent().model_calls), (StopReason::Completed, 2 * 9));
    insta::assert_snapshot!(response.text(), @"agent `self` was not run: agents nest 8 deep as tools at most; answer without it");
}
