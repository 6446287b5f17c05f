use std::{num::NonZeroU32, time::Duration};

use agent_core::{
    Agent, AgentExt, ChatAgent, ChatAgentOptions, ChatHook, ChatMessage, ChatOptions, ChatRequest, ChatResponse,
    ChatUpdate, Content, Delta, Error, ErrorKind, Format, History, Instructions, Limits, Result, RunContext, Session,
    StopReason, ToolContext, ToolOutput, Typed, Unfinished, Update, Usage, exit_loop, run_typed,
    testing::{ScriptedAgent, ScriptedClient, assert_laws},
};
use async_trait::async_trait;
use futures::{StreamExt, stream};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{
    FnClient, Log, agent, agent_with, asks, block_on, call, collect, constant, ends, guarded, limited, noted, replies,
    seen, session, show, silent, text, thought, tokens, told,
};

fn turns(max: u32) -> ChatAgentOptions {
    ChatAgentOptions { max_turns: NonZeroU32::new(max).unwrap(), ..ChatAgentOptions::default() }
}

fn instructed(instructions: impl Into<Instructions>) -> ChatAgentOptions {
    ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() }
}

#[tokio::test]
async fn a_model_is_asked_until_it_answers_without_a_call() {
    let log = Log::default();
    let client = ScriptedClient::new()
        .reply(asks([text("let me see"), call("c1", "look")]), tokens(10, 1))
        .reply(asks([call("c2", "look")]), tokens(20, 2))
        .reply(ChatMessage::assistant("it is 42"), tokens(30, 3));
    let agent = agent("a", &client).tool(noted("look", &log));
    let mut session = session("what is it?");
    let cx = RunContext::default();
    let response = agent.complete(&mut session, &cx).await.unwrap();
    assert_eq!((response.text().as_str(), response.stop), ("it is 42", StopReason::Completed));
    assert_eq!((response.usage, cx.spent().tokens), (tokens(60, 6), 66));
    assert_eq!((cx.spent().model_calls, cx.spent().tool_calls), (3, 2));
    assert_eq!(
        response.events.iter().map(|e| e.usage).collect::<Vec<_>>(),
        [Some(tokens(10, 1)), None, Some(tokens(20, 2)), None, Some(tokens(30, 3)),]
    );
    insta::assert_snapshot!(show(session.messages()), @"
    user: what is it?
    assistant(a): let me see + call c1 look
    tool(a): c1 = done
    assistant(a): call c2 look
    tool(a): c2 = done
    assistant(a): it is 42
    ");
    insta::assert_snapshot!(seen(&client, 2), @"
    user: what is it?
    assistant(a): let me see + call c1 look
    tool(a): c1 = done
    assistant(a): call c2 look
    tool(a): c2 = done
    ");
}

#[tokio::test]
async fn deltas_are_forwarded_and_never_committed() {
    let client = ScriptedClient::new().says("one two");
    let came = assert_laws(&agent("a", &client), &mut session("go"), &RunContext::default()).await;
    let deltas: Vec<_> = came.iter().filter(|update| matches!(update, Update::Delta(_))).cloned().collect();
    assert_eq!(deltas, ["one ", "two"].map(|text| Update::Delta(Delta::Text(text.to_owned()))));
    assert_eq!(came.len(), 4);
}

#[tokio::test]
async fn after_its_turns_an_agent_stops_with_every_call_answered() {
    let log = Log::default();
    let client = replies([asks([call("c1", "look")]), asks([call("c2", "look")]), ChatMessage::assistant("done")]);
    let agent = agent_with("a", &client, turns(2)).tool(noted("look", &log));
    let mut session = session("go");
    let cx = RunContext::default();
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::TurnLimit);
    assert_eq!((log.all().len(), client.requests().len()), (2, 2));
    let more = agent.complete(&mut session, &cx).await.unwrap();
    assert_eq!((more.text().as_str(), more.stop, log.all().len()), ("done", StopReason::Completed, 2));
}

#[tokio::test]
async fn an_answer_of_thoughts_only_is_recorded_and_asked_beyond() {
    let native = Content::Native { provider: "p".into(), model: "m".into(), value: json!(1) };
    let client = replies([asks([thought("hm")]), asks([thought("hm"), native]), ChatMessage::assistant("42")]);
    let mut session = session("go");
    let response = agent("a", &client).complete(&mut session, &RunContext::default()).await.unwrap();
    assert_eq!((response.text().as_str(), response.events.len(), session.messages().len()), ("42", 3, 4));
    let client = replies([asks([thought("1")]), asks([thought("2")]), asks([thought("3")])]);
    let response = agent_with("a", &client, turns(2)).ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!((response.stop, response.events.len()), (StopReason::TurnLimit, 2));
}

#[tokio::test]
async fn the_end_of_an_answer_without_calls_is_the_runs() {
    for stop in [StopReason::Completed, StopReason::Length, StopReason::Filtered] {
        for message in [ChatMessage::assistant("half"), asks([])] {
            let agent = ChatAgent::new("a", ends(message, stop), turns(1));
            assert_eq!(agent.ask(&mut Session::new(), "go").await.unwrap().stop, stop);
        }
    }
    let agent = ChatAgent::new("a", ends(asks([thought("cut")]), StopReason::Length), turns(9));
    assert_eq!(agent.ask(&mut Session::new(), "go").await.unwrap().stop, StopReason::Length);
}

#[tokio::test]
async fn the_output_key_takes_the_text_of_an_answer_without_calls_in_the_same_event() {
    let log = Log::default();
    let client = replies([
        asks([text("let me see"), call("c1", "look")]),
        asks([thought("hm")]),
        ChatMessage::assistant("draft"),
        ChatMessage::assistant(""),
    ]);
    let options = ChatAgentOptions { output_key: Some("out".into()), ..ChatAgentOptions::default() };
    let agent = agent_with("a", &client, options).tool(noted("look", &log));
    let mut session = Session::new().with_state("out", "before");
    let response = agent.ask(&mut session, "go").await.unwrap();
    let changed: Vec<usize> = response.events.iter().map(|event| event.state.len()).collect();
    assert_eq!((changed, session.get::<String>("out").as_deref()), (vec![0, 0, 0, 1], Some("draft")));
    agent.ask(&mut session, "again").await.unwrap();
    assert_eq!(session.get::<String>("out").as_deref(), Some("draft"), "an empty text overwrites nothing");
}

#[tokio::test]
async fn exit_loop_ends_the_run_without_another_model_call_and_keeps_the_draft() {
    let client = replies([ChatMessage::assistant("draft"), asks([text("fine"), call("c1", "exit_loop")])]);
    let options = ChatAgentOptions { output_key: Some("out".into()), ..ChatAgentOptions::default() };
    let agent = agent_with("a", &client, options).tool(exit_loop());
    let mut session = Session::new();
    agent.ask(&mut session, "go").await.unwrap();
    let response = agent.ask(&mut session, "check").await.unwrap();
    assert_eq!((response.stop, client.requests().len()), (StopReason::Escalated, 2));
    assert_eq!(response.events.iter().map(|event| event.escalate).collect::<Vec<_>>(), [false, true]);
    assert_eq!(session.get::<String>("out").as_deref(), Some("draft"));
    assert!(session.state().keys().all(|key| key == "out"), "{:?}", session.state());
}

#[tokio::test]
async fn an_escalation_lets_the_model_speak_once_more_unless_the_turn_ends() {
    let client =
        replies([asks([call("c1", "alarm")]), ChatMessage::assistant("I raised it"), ChatMessage::assistant("no")]);
    let agent1 = agent("a", &client).tool(constant("alarm", ToolOutput::text("ok").escalate()));
    let response = agent1.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Escalated, "I raised it"));

    let client = replies([asks([call("c1", "stop")]), ChatMessage::assistant("not asked")]);
    let agent2 = agent("a", &client).tool(constant("stop", ToolOutput::text("ok").end_turn()));
    let response = agent2.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!((response.stop, client.requests().len()), (StopReason::Completed, 1));

    let client = replies([asks([call("c1", "alarm")])]);
    let agent3 = agent_with("a", &client, turns(1)).tool(constant("alarm", ToolOutput::text("ok").escalate()));
    let response = agent3.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(response.stop, StopReason::Escalated, "also where the turns are used up");
}

#[tokio::test]
async fn the_current_turn_is_the_request_what_is_pending_and_what_the_run_adds() {
    let log = Log::default();
    let options = ChatAgentOptions { history: History::CurrentTurn, ..ChatAgentOptions::default() };
    let client =
        replies([ChatMessage::assistant("old answer"), asks([call("c1", "look")]), ChatMessage::assistant("new")]);
    let agent = agent_with("a", &client, options.clone()).tool(noted("look", &log));
    let mut session = Session::new();
    agent.ask(&mut session, "old question").await.unwrap();
    session.push("new question");
    agent.ask(&mut session, "in short").await.unwrap();
    insta::assert_snapshot!(seen(&client, 1), @"
    user: new question
    user: in short
    ");
    insta::assert_snapshot!(seen(&client, 2), @"
    user: new question
    user: in short
    assistant(a): call c1 look
    tool(a): c1 = done
    ");
    // A later agent of the same turn does not see what the first one said, but what waits for it.
    session.apply(&crate::support::event("loop", vec![ChatMessage::user("improve it").by("loop")], vec![]));
    let next = replies([ChatMessage::assistant("better")]);
    agent_with("b", &next, options).complete(&mut session, &RunContext::default()).await.unwrap();
    insta::assert_snapshot!(seen(&next, 0), @"
    user: new question
    user: in short
    user(loop): improve it
    ");
}

#[tokio::test]
async fn the_current_turn_shows_calls_that_were_open_when_the_run_began() {
    let log = Log::default();
    let options = ChatAgentOptions { history: History::CurrentTurn, ..ChatAgentOptions::default() };
    let client = replies([
        asks([call("c0", "look")]),
        asks([call("c1", "del"), call("c2", "look")]),
        ChatMessage::assistant("deleted"),
        asks([call("c3", "del")]),
        ChatMessage::assistant("never mind"),
    ]);
    let agent = agent_with("a", &client, options).tool(noted("look", &log)).tool(guarded("del", &log));
    let mut session = Session::new();
    agent.ask(&mut session, "delete it").await.unwrap();
    session.push(ChatMessage::approve("c1"));
    agent.complete(&mut session, &RunContext::default()).await.unwrap();
    insta::assert_snapshot!(seen(&client, 2), @"
    user: delete it
    assistant(a): call c1 del + call c2 look
    tool(a): c1 = done
    tool(a): c2 = done
    ");
    agent.ask(&mut session, "and that").await.unwrap();
    agent.ask(&mut session, "or not").await.unwrap();
    insta::assert_snapshot!(seen(&client, 4), @"
    assistant(a): call c3 del
    tool(a): c3 ! not run: the caller went on to something else
    user: or not
    ");
}

#[tokio::test]
async fn thoughts_of_other_agents_are_not_shown() {
    let mut session = session("go");
    for author in ["other", "a"] {
        let message = asks([thought(author), text("said")]).by(author);
        session.apply(&crate::support::event(author, vec![message], vec![]));
    }
    session.push(asks([thought("nobody's")]));
    session.push("next");
    let client = replies([ChatMessage::assistant("ok")]);
    agent("a", &client).complete(&mut session, &RunContext::default()).await.unwrap();
    insta::assert_snapshot!(seen(&client, 0), @"
    user: go
    assistant(other): said
    assistant(a): <a> + said
    assistant: <nobody's>
    user: next
    ");
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Answer {
    value: u32,
}

#[tokio::test]
async fn a_typed_answer_is_read_from_the_last_text_and_its_schema_is_sent() {
    for said in [r#"{"value": 42}"#, "```json\n{\"value\": 42}\n```", " {\"value\": 42}\n"] {
        let client = ScriptedClient::new().says(said);
        let own = ChatOptions { format: Format::of::<String>(), ..ChatOptions::default() };
        let agent = agent_with("a", &client, ChatAgentOptions { chat: own, ..ChatAgentOptions::default() });
        let typed: Typed<Answer> = run_typed(&agent, &mut session("go"), &RunContext::default()).await.unwrap();
        assert_eq!((typed.value, typed.response.text().as_str()), (Answer { value: 42 }, said));
        assert_eq!(client.requests()[0].options.format, Format::of::<Answer>());
    }
}

#[tokio::test]
async fn a_run_without_a_wanted_format_has_the_agents_own() {
    let client = ScriptedClient::new().says("x").says("y");
    let own = ChatOptions { format: Format::of::<String>(), ..ChatOptions::default() };
    let agent = agent_with("a", &client, ChatAgentOptions { chat: own.clone(), ..ChatAgentOptions::default() });
    let cx = RunContext::default();
    agent.complete(&mut session("go"), &cx).await.unwrap();
    agent.complete(&mut session("go"), &cx.with_format(Format::Text)).await.unwrap();
    assert_eq!(client.requests()[0].options, own);
    assert_eq!(client.requests()[1].options.format, Format::Text);
}

#[tokio::test]
async fn an_answer_that_is_no_value_or_not_finished_is_invalid() {
    let cx = RunContext::default();
    let agent1 = ScriptedAgent::new("a").says("forty-two");
    let error = run_typed::<Answer>(&agent1, &mut session("go"), &cx).await.unwrap_err();
    insta::assert_snapshot!(told(&error), @r#"Invalid: read the answer of `a` as Answer: "forty-two": expected ident at line 1 column 2"#);
    let agent2 = ChatAgent::new("a", ends(ChatMessage::assistant(r#"{"value": 42}"#), StopReason::Length), turns(1));
    let error = run_typed::<Answer>(&agent2, &mut session("go"), &cx).await.unwrap_err();
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Unfinished>()).unwrap();
    assert_eq!((error.kind(), source.response.stop), (ErrorKind::Invalid, StopReason::Length));
}

/// A hook that notes what it is asked, and fails where it is told to.
struct Hook {
    name: &'static str,
    fails: Option<&'static str>,
    log: Log,
}

impl Hook {
    fn asked(&self, what: &str) -> Result<()> {
        self.log.note(format!("{} {what}", self.name));
        match self.fails {
            Some(fails) if fails == what => {
                Err(Error::new(ErrorKind::Invalid, format!("{} refuses", self.name)).with_source("for a reason"))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl ChatHook for Hook {
    async fn before_model(&self, request: &mut ChatRequest, _: &RunContext) -> Result<()> {
        request.options.stop.push(self.name.to_owned());
        self.asked("before_model")
    }

    async fn after_model(&self, response: &mut ChatResponse, _: &RunContext) -> Result<()> {
        let contents = response.message.contents.iter().cloned().chain([text(self.name)]);
        response.message = asks(contents.collect::<Vec<_>>());
        self.asked("after_model")
    }

    async fn before_tool(&self, cx: &ToolContext) -> Result<Option<ToolOutput>> {
        self.asked("before_tool")?;
        Ok((cx.call.name == self.name).then(|| ToolOutput::text("from the hook")))
    }

    async fn after_tool(&self, _: &ToolContext, output: &mut ToolOutput) -> Result<()> {
        output.contents.push(text(self.name));
        self.asked("after_tool")
    }
}

fn hook(name: &'static str, fails: Option<&'static str>, log: &Log) -> Hook {
    Hook { name, fails, log: log.clone() }
}

fn looking() -> ScriptedClient {
    ScriptedClient::new()
        .reply(asks([call("c1", "look")]), tokens(1, 1))
        .reply(ChatMessage::assistant("42"), tokens(2, 2))
}

#[tokio::test]
async fn hooks_are_asked_in_the_order_in_which_they_were_added() {
    let (log, client) = (Log::default(), looking());
    let agent = agent("a", &client).tool(noted("look", &log)).hook(hook("h1", None, &log)).hook(hook("h2", None, &log));
    let mut session = session("go");
    let response = agent.complete(&mut session, &RunContext::default()).await.unwrap();
    assert_eq!(response.text(), "42h1h2");
    assert_eq!(client.requests()[0].options.stop, ["h1", "h2"]);
    insta::assert_snapshot!(log.all().join("\n"), @"
    h1 before_model
    h2 before_model
    h1 after_model
    h2 after_model
    h1 before_tool
    h2 before_tool
    look
    h1 after_tool
    h2 after_tool
    h1 before_model
    h2 before_model
    h1 after_model
    h2 after_model
    ");
    insta::assert_snapshot!(show(session.messages()), @"
    user: go
    assistant(a): call c1 look + h1 + h2
    tool(a): c1 = doneh1h2
    assistant(a): 42 + h1 + h2
    ");
}

#[tokio::test]
async fn an_error_of_a_model_hook_ends_the_run() {
    for (fails, usage, asked) in [("before_model", None, 0), ("after_model", Some(tokens(1, 1)), 1)] {
        let (log, client, cx) = (Log::default(), looking(), RunContext::default());
        let agent = agent("a", &client).tool(noted("look", &log)).hook(hook("h", Some(fails), &log));
        let mut session = session("go");
        let mut came = collect(agent.run(&mut session, &cx)).await;
        let error = came.pop().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, "h refuses"));
        let reported: Vec<Option<Usage>> = came
            .into_iter()
            .filter_map(|update| if let Update::Event(event) = update.unwrap() { Some(event.usage) } else { None })
            .collect();
        assert_eq!(reported, usage.into_iter().map(Some).collect::<Vec<_>>(), "{fails}");
        assert_eq!((client.requests().len(), cx.spent().tokens), (asked, usage.map_or(0, |u| u.total())));
        assert_eq!((session.messages().len(), cx.spent().model_calls as usize), (1, asked));
    }
}

#[tokio::test]
async fn an_error_of_a_tool_hook_is_the_result() {
    let mut results = vec![];
    for fails in ["before_tool", "after_tool"] {
        let (log, client, cx) = (Log::default(), looking(), RunContext::default());
        let agent = agent("a", &client)
            .tool(noted("look", &log))
            .hook(hook("h1", Some(fails), &log))
            .hook(hook("h2", None, &log));
        let mut session = session("go");
        assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Completed);
        let ran = log.all().iter().filter(|entry| *entry == "look").count();
        results.push(format!("{} (ran {ran}×, counted {}×)", show(&session.messages()[2..3]), cx.spent().tool_calls));
    }
    insta::assert_snapshot!(results.join("\n"), @"
    tool(a): c1 ! h1 refuses: for a reason (ran 0×, counted 0×)
    tool(a): c1 ! h1 refuses: for a reason (ran 1×, counted 1×)
    ");
}

#[tokio::test]
async fn tokens_of_a_tool_are_reported_though_a_hook_fails_after_it() {
    let client = looking();
    let output = ToolOutput { usage: Some(tokens(100, 0)), ..ToolOutput::text("ok") };
    let agent = agent("a", &client).tool(constant("look", output)).hook(hook("h", Some("after_tool"), &Log::default()));
    let response = agent.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(response.usage, tokens(103, 3));
}

#[tokio::test]
async fn a_hooks_own_result_stands_for_the_tools_and_does_not_count() {
    let (log, client) = (Log::default(), looking());
    let agent =
        agent("a", &client).tool(noted("look", &log)).hook(hook("look", None, &log)).hook(hook("h2", None, &log));
    let cx = limited(Limits { tool_calls: Some(0), ..Limits::default() });
    let mut session = session("go");
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Completed);
    assert_eq!(session.messages()[2].tool_results().next().unwrap().text(), "from the hook");
    assert_eq!(
        log.all().iter().filter(|entry| entry.contains("tool") || *entry == "look").count(),
        1,
        "{:?}",
        log.all()
    );
}

#[tokio::test]
async fn an_agent_of_the_callers_name_or_with_two_tools_of_one_name_is_told_so() {
    let client = ScriptedClient::new().says("x").says("y");
    let log = Log::default();
    let agents = [agent("user", &client), agent("a", &client).tool(noted("t", &log)).tool(noted("t", &log))];
    let mut errors = vec![];
    for agent in agents {
        let mut session = session("go");
        errors.push(told(&agent.complete(&mut session, &RunContext::default()).await.unwrap_err()));
        assert_eq!((session.messages().len(), client.requests().len()), (1, 0));
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    Invalid: agent named `user`: that name is the caller's; give the agent another one
    Invalid: agent `a` has two tools named `t`; rename one
    ");
}

#[tokio::test]
async fn a_model_that_fails_or_stops_without_an_end_fails_the_run() {
    let fails = FnClient(|_| {
        let delta = Ok(ChatUpdate::Delta(Delta::Text("ha".into())));
        stream::iter([delta, Err(Error::new(ErrorKind::Provider, "overloaded").transient())]).boxed()
    });
    let error = ChatAgent::new("a", fails, turns(1)).ask(&mut Session::new(), "go").await.unwrap_err();
    assert!(error.is_transient(), "the provider's error is the run's");
    let stops = FnClient(|_| stream::iter([Ok(ChatUpdate::Delta(Delta::Text("ha".into())))]).boxed());
    let error = ChatAgent::new("a", stops, turns(1)).ask(&mut Session::new(), "go").await.unwrap_err();
    insta::assert_snapshot!(told(&error), @"Contract: model `function` stopped without saying that its answer is whole");
}

#[tokio::test]
async fn instructions_are_filled_from_the_state() {
    let state = Session::new()
        .with_state("name", "Ada")
        .with_state("n", 7)
        .with_state("list", json!([1, "a"]))
        .with_state("a.b:c-d_e", "odd")
        .with_state("tricky", "{name} {absent}")
        .with_state("none", json!(null));
    let table = [
        ("plain", Some("plain")),
        ("", None),
        ("{absent?}", None),
        ("hello {name}, {name}!", Some("hello Ada, Ada!")),
        ("{n} {list} {none}", Some("7 [1,\"a\"] null")),
        ("{a.b:c-d_e}", Some("odd")),
        ("{tricky}", Some("{name} {absent}")),
        ("[{absent?}]", Some("[]")),
        ("{name?}", Some("Ada")),
        ("{} { } {a b} {\"k\": 1} {name", Some("{} { } {a b} {\"k\": 1} {name")),
        ("{{name}}", Some("{Ada}")),
        ("{x{name}", Some("{xAda")),
        ("}{name}{", Some("}Ada{")),
        ("{?} {name??} { name }", Some("{?} {name??} { name }")),
        ("für {name} …{n}…", Some("für Ada …7…")),
    ];
    for (template, expected) in table {
        let client = ScriptedClient::new().says("ok");
        agent_with("a", &client, instructed(template)).ask(&mut state.clone(), "go").await.unwrap();
        assert_eq!(client.requests()[0].instructions.as_deref(), expected, "{template}");
    }
    let client = ScriptedClient::new().says("ok");
    let dynamic = Instructions::dynamic(|session| format!("{{name}} {}", session.messages().len()));
    agent_with("a", &client, instructed(dynamic)).ask(&mut state.clone(), "go").await.unwrap();
    assert_eq!(client.requests()[0].instructions.as_deref(), Some("{name} 1"));
}

#[tokio::test]
async fn a_key_that_is_absent_is_named() {
    let client = ScriptedClient::new().says("ok");
    let error = agent_with("a", &client, instructed("{name}")).ask(&mut Session::new(), "go").await.unwrap_err();
    insta::assert_snapshot!(told(&error), @"Template: fill the instructions: the state has no key `name`; set it, or write `{name?}` if it may be absent");
}

/// What a model is instructed with, for this template and state.
fn filled(template: String, value: &str) -> Option<String> {
    let client = ScriptedClient::new().says("ok");
    let agent = agent_with("a", &client, instructed(template));
    let mut session = Session::new().with_state("k", value);
    block_on(agent.ask(&mut session, "go")).unwrap();
    client.requests()[0].instructions.as_deref().map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_without_braces_is_sent_as_it_is(text in "[^{}]+") {
        prop_assert_eq!(filled(text.clone(), ""), Some(text));
    }

    #[test]
    fn values_are_not_expanded(before in "[^{}]*", value in ".{1,20}", after in "[^{}]*") {
        let expected = format!("{before}{value}{after}");
        prop_assert_eq!(filled(format!("{before}{{k}}{after}"), &value), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_asks_no_model() {
    let client = ScriptedClient::new().says("ok");
    let cx = RunContext::default();
    cx.cancel().cancel();
    let mut session = session("go");
    let response = agent("a", &client).complete(&mut session, &cx).await.unwrap();
    assert_eq!((response.stop, response.events.len(), client.requests().len()), (StopReason::Cancelled, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn time_and_cancellation_interrupt_a_pending_model_call() {
    let agent = ChatAgent::new("a", silent(), turns(1));
    let cx = limited(Limits { wall: Some(Duration::from_secs(5)), ..Limits::default() });
    assert_eq!(agent.complete(&mut session("go"), &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    let cx = RunContext::default();
    let mut session = session("go");
    let (response, ()) = tokio::join!(agent.complete(&mut session, &cx), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.cancel().cancel();
    });
    assert_eq!((response.unwrap().stop, session.messages().len()), (StopReason::Cancelled, 1));
}

#[tokio::test]
async fn a_limit_on_models_or_tokens_ends_the_run_before_the_next_call() {
    let log = Log::default();
    for limits in [
        Limits { model_calls: Some(1), ..Limits::default() },
        Limits { tokens: Some(2), ..Limits::default() },
        Limits { tokens: Some(1), ..Limits::default() },
    ] {
        let client = looking();
        let agent = agent("a", &client).tool(noted("look", &log));
        let mut session = session("go");
        let response = agent.complete(&mut session, &limited(limits)).await.unwrap();
        assert_eq!((response.stop, client.requests().len()), (StopReason::BudgetExhausted, 1));
        assert_eq!(agent.complete(&mut session, &RunContext::default()).await.unwrap().text(), "42");
    }
}
