//! The page of a run: its trials as timelines.

use std::{num::NonZeroUsize, path::Path, sync::Arc};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, Draft, StopReason, ToolContext,
    testing::{ScriptedAgent, ScriptedClient},
    tool_fn,
};
use agent_eval::{EvalSet, HtmlOptions, Report, ReportOptions, Resume, RunLog, RunOptions, Subject, subject_fn};
use serde_json::{Value, json};

use crate::support::*;

/// The page of a run of this set, with its trials.
async fn page(set: &EvalSet, subject: &dyn Subject, count: u32, options: HtmlOptions) -> String {
    let dir = tempfile::tempdir().unwrap();
    logged(set, subject, count, dir.path(), None).await;
    page_of(dir.path(), options)
}

async fn logged(set: &EvalSet, subject: &dyn Subject, count: u32, dir: &Path, resume: Option<Resume>) {
    let options = RunOptions { log: Some(dir.into()), resume, concurrency: NonZeroUsize::MIN, ..repeats(count) };
    set.run(subject, options).await.unwrap();
}

fn page_of(dir: &Path, options: HtmlOptions) -> String {
    let run = RunLog::open(dir).unwrap();
    Report::of(&run, ReportOptions::default()).unwrap().to_html_with_trials(&run, &options).unwrap()
}

/// The timelines of a page, without what differs between equal runs.
fn timelines(page: &str) -> Vec<String> {
    let pieces = page.split("<details class=\"trial\">").skip(1);
    pieces.map(|piece| timeless_piece(piece.split("</details>").next().unwrap())).collect()
}

fn timeless_piece(piece: &str) -> String {
    let mut parts = piece.splitn(2, " · seed ");
    let (head, rest) = (parts.next().unwrap(), parts.next().unwrap());
    let head = head.rsplit_once(" · ").map_or(head, |(head, _)| head);
    format!("{head}{}", &rest[rest.find('<').unwrap()..]).trim().to_owned()
}

#[tokio::test]
async fn a_trial_that_did_not_pass_is_a_timeline() {
    let subject = writes(2, |trial| if number(trial) == 0 { Writer::Never } else { Writer::GoodAt(1) });
    let page = page(&set_of(ids(2)), &subject, 1, HtmlOptions::default()).await;
    let shown = timelines(&page);
    assert_eq!(shown.len(), 1, "the trial that passed is not shown");
    insta::assert_snapshot!(shown[0], @r#"
    <summary><span class="badge bad">fail</span> <span>repeat 0</span> <span class="dim">iteration limit reached · 2 iterations · 2,200 tokens</span></summary>
    <ol class="timeline">
    <li class="caller"><b>caller</b><pre>go</pre></li>
    <li class="agent"><b>writer</b> <span class="dim">1,000 tokens</span><pre>bad 1</pre></li>
    <li class="iteration"><b>end of iteration 1 of refine</b> gold checks: <span class="badge bad">fail</span> the loop: <span class="badge bad">is-good objects</span> <span class="dim">1,000 tokens</span></li>
    <li class="caller"><b>refine</b><pre>not good</pre></li>
    <li class="agent"><b>writer</b> <span class="dim">1,200 tokens</span><pre>bad 2</pre></li>
    <li class="iteration"><b>end of iteration 2 of refine</b> gold checks: <span class="badge bad">fail</span> the loop: <span class="badge bad">is-good objects</span> <span class="dim">1,200 tokens</span><pre>not good</pre></li>
    </ol>
    <h4>checks</h4>
    <ul class="checks">
    <li><span class="badge bad">fail</span> <code>expected</code> the answer is not the expected text</li>
    </ul>
    "#);
}

#[tokio::test]
async fn all_trials_are_shown_on_demand() {
    let subject = writes(2, |_| Writer::GoodAt(2));
    let options = HtmlOptions { passed: true, ..HtmlOptions::default() };
    let shown = timelines(&page(&set_of(ids(2)), &subject, 2, options).await);
    assert_eq!(shown.len(), 4);
    assert!(shown.iter().all(|piece| piece.contains("nothing objects")), "{shown:?}");
}

/// An agent that calls tools with these arguments, and then says this.
fn calling(calls: Vec<(&'static str, Value)>, says: &'static str) -> impl Subject {
    subject_fn(move |_| {
        let calls = calls.clone();
        Box::pin(async move {
            let model = calls.iter().enumerate().fold(ScriptedClient::new(), |model, (at, (name, arguments))| {
                model.calls(format!("{at}"), *name, arguments.clone())
            });
            let agent = ChatAgent::new("clerk", model.says(says), ChatAgentOptions::default());
            let tool = |name: &str| tool_fn(name, "Looks.", |args: Value, _: ToolContext| async move { Ok(args) });
            Ok(Arc::new(agent.tool(tool("search")).tool(tool("open"))) as _)
        })
    })
}

#[tokio::test]
async fn expected_and_made_calls_stand_side_by_side() {
    let calls = json!({ "calls": [{ "name": "search", "arguments": { "q": "a" } }, { "name": "open", "arguments": { "n": 1 } }] });
    let set = set_with([json!({ "id": "a", "input": { "text": "go" }, "expected_calls": calls })]);
    let subject = calling(vec![("search", json!({ "q": "a" })), ("open", json!({ "n": 2 }))], "done");
    insta::assert_snapshot!(timelines(&page(&set, &subject, 1, HtmlOptions::default()).await)[0], @r#"
    <summary><span class="badge bad">fail</span> <span>repeat 0</span> <span class="dim">completed · 0 tokens</span></summary>
    <ol class="timeline">
    <li class="caller"><b>caller</b><pre>go</pre></li>
    <li class="call"><b>clerk calls search</b><pre>{
      &quot;q&quot;: &quot;a&quot;
    }</pre></li>
    <li class="result"><b>result</b><pre>{&quot;q&quot;:&quot;a&quot;}</pre></li>
    <li class="call"><b>clerk calls open</b><pre>{
      &quot;n&quot;: 2
    }</pre></li>
    <li class="result"><b>result</b><pre>{&quot;n&quot;:2}</pre></li>
    <li class="agent"><b>clerk</b><pre>done</pre></li>
    </ol>
    <h4>calls, expected and made</h4>
    <div class="scroll"><table class="calls"><thead><tr><th></th><th scope="col">expected</th><th scope="col">made</th></tr></thead>
    <tbody>
    <tr><td>=</td><td><code>search {&quot;q&quot;:&quot;a&quot;}</code></td><td><code>search {&quot;q&quot;:&quot;a&quot;}</code></td></tr>
    <tr class="missing"><td>−</td><td><code>open {&quot;n&quot;:1}</code></td><td></td></tr>
    <tr class="extra"><td>+</td><td></td><td><code>open {&quot;n&quot;:2}</code></td></tr>
    </tbody></table></div>
    <h4>checks</h4>
    <ul class="checks">
    <li><span class="badge bad">fail</span> <code>expected_calls</code> [0.500] 1 of 2 expected calls not made, 1 of 2 calls not expected (in this order, and no others)</li>
    </ul>
    "#);
}

#[tokio::test]
async fn each_turn_has_its_words_and_its_calls() {
    let turns = json!([
        { "say": "first", "expected": ["one"] },
        { "say": "second", "expected_calls": { "calls": [{ "name": "search" }] } },
    ]);
    let set = set_with([json!({ "id": "a", "input": { "turns": turns }, "state": { "tone": "dry" } })]);
    let subject = subject_fn(|_| {
        Box::pin(async {
            let end = |text: &str| (Draft::message(ChatMessage::assistant(text)), StopReason::Completed);
            let ((one, stop), (two, _)) = (end("one"), end("two"));
            Ok(Arc::new(ScriptedAgent::new("talker").turn(one, stop).turn(two, stop)) as _)
        })
    });
    insta::assert_snapshot!(timelines(&page(&set, &subject, 1, HtmlOptions::default()).await)[0], @r#"
    <summary><span class="badge bad">fail</span> <span>repeat 0</span> <span class="dim">completed · 0 tokens</span></summary>
    <ol class="timeline">
    <li class="state"><b>state at the beginning</b><pre>tone = &quot;dry&quot;</pre></li>
    <li class="caller"><b>caller</b><pre>first</pre></li>
    <li class="agent"><b>talker</b><pre>one</pre></li>
    <li class="caller"><b>caller</b><pre>second</pre></li>
    <li class="agent"><b>talker</b><pre>two</pre></li>
    </ol>
    <h4>calls of turn 1, expected and made</h4>
    <div class="scroll"><table class="calls"><thead><tr><th></th><th scope="col">expected</th><th scope="col">made</th></tr></thead>
    <tbody>
    <tr class="missing"><td>−</td><td><code>search {}</code></td><td></td></tr>
    </tbody></table></div>
    <h4>checks</h4>
    <ul class="checks">
    <li><span class="badge good">pass</span> <code>expected</code> turn 0 </li>
    <li><span class="badge bad">fail</span> <code>expected_calls</code> turn 1 [0.000] 1 of 1 expected call not made (in this order, and no others)</li>
    </ul>
    "#);
}

#[tokio::test]
async fn what_a_trial_holds_is_text_and_nothing_else() {
    const EVIL: &str = "</pre></details></script><img src=x onerror=alert(1)>\" '&\u{202e}\u{0}";
    let tags = |text: &'static str| async move {
        let call = json!({ "name": text, "arguments": { text: text } });
        let case = json!({
            "id": text, "input": { "text": text }, "state": { text: text }, "expected": ["other"],
            "expected_calls": { "calls": [call] },
        });
        let arguments = json!({ text: text });
        let subject = calling(vec![("search", arguments.clone()), ("unknown", arguments)], text);
        let page = page(&set_with([case]), &subject, 1, HtmlOptions::default()).await;
        assert!(!page.contains("<img") && !page.contains('\u{202e}'));
        let tags = page.split('<').skip(1).map(|tag| tag.split([' ', '>', '\n']).next().unwrap().to_owned());
        (page.matches("class=\"trial\"").count(), tags.collect::<Vec<String>>())
    };
    let (evil, harmless) = (tags(EVIL).await, tags("text").await);
    assert_eq!(evil, harmless);
    assert_eq!(evil.0, 1);
}

#[tokio::test]
async fn a_page_has_a_bound() {
    let subject = calling(vec![], "äbcdefgh");
    let short = HtmlOptions { longest_text: 3, ..HtmlOptions::default() };
    let page_of = async |options| page(&set_of(ids(3)), &subject, 2, options).await;
    let cut = page_of(short).await;
    assert!(cut.contains("<pre>äbc<span class=\"dim\">… 5 characters more</span></pre>"), "{cut}");
    let one = timelines(&page_of(HtmlOptions::default()).await)[0].len();
    let few = page_of(HtmlOptions { most_bytes: one * 4, ..HtmlOptions::default() }).await;
    let shown = timelines(&few);
    assert_eq!(shown.len(), 3, "the first repeat of each case");
    assert!(shown.iter().all(|piece| piece.contains("repeat 0")), "{shown:?}");
    assert_eq!(few.matches("1 more in the run&#39;s log").count() + few.matches("1 more in the run's log").count(), 3);
}

#[tokio::test]
async fn a_trial_that_ran_again_is_shown_as_it_ended_last() {
    let dir = tempfile::tempdir().unwrap();
    let set = set_of(["a"]);
    logged(&set, &calling(vec![], "first"), 1, dir.path(), None).await;
    logged(&set, &calling(vec![], "second"), 1, dir.path(), Some(Resume::NotPassed)).await;
    let page = page_of(dir.path(), HtmlOptions::default());
    let shown = timelines(&page);
    assert!(shown.len() == 1 && shown[0].contains("second") && !shown[0].contains("first"), "{shown:?}");
    logged(&set, &calling(vec![], "good"), 1, dir.path(), Some(Resume::NotPassed)).await;
    assert_eq!(timelines(&page_of(dir.path(), HtmlOptions::default())), [""; 0]);
}
