//! How trials run, and what of them counts.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, Draft, Error, ErrorKind, StopReason, ToolContext, Usage, agent_fn,
    testing::{ScriptedAgent, ScriptedClient},
    tool_fn,
};
use agent_eval::{CassetteMode, Check, EvalSet, ExitRules, Outcome, RunOptions, Subject, Tally, Verdict, subject_fn};
use agent_loop::{LoopAgent, LoopOptions, evaluate_async_fn};
use serde_json::json;

use crate::support::*;

fn counts(tally: &Tally) -> [u64; 4] {
    [tally.passed, tally.failed, tally.unscored, tally.errors]
}

async fn refused(set: &EvalSet, options: RunOptions) -> String {
    let kept = Arc::new(Kept::default());
    let options = RunOptions { progress: Some(kept.clone()), ..options };
    let error = set.run(&acts(|_| Act::Good), options).await.unwrap_err();
    assert_eq!(kept.began.load(Relaxed), 0, "nothing runs");
    error.to_string()
}

#[tokio::test]
async fn what_can_only_pass_is_refused_before_anything_runs() {
    let unchecked = set_with([json!({ "id": "a", "input": { "text": "go" } })]);
    let silent = set_with([json!({ "id": "a", "input": { "turns": [] }, "expected": ["good"] })]);
    let none = RunOptions { filter: Some(Arc::new(|_, _| false)), ..RunOptions::default() };
    let unknown = RunOptions { cases: vec!["b".to_owned()], ..RunOptions::default() };
    let texts = [
        refused(&set_of([] as [&str; 0]), RunOptions::default()).await,
        refused(&unchecked, RunOptions::default()).await,
        refused(&silent, RunOptions::default()).await,
        refused(&set_of(["a", "a"]), RunOptions::default()).await,
        refused(&set_of(["a"]), none).await,
        refused(&set_of(["a"]), unknown).await,
    ];
    insta::assert_snapshot!(texts.join("\n"), @"
    run set `set`: it has no cases
    judge set `set`: case `a`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
    run case `a` of set `set`: its input says nothing
    run set `set`: two cases have the id `a`
    select cases to run: none is left; nothing that runs is nothing that passes
    select case `b`: there is none of this id
    ");
}

#[tokio::test]
async fn runs_that_fail_stay_in_the_rate() {
    let subject = acts(|trial| match number(trial) {
        0 => Act::Good,
        1 => Act::Bad,
        2 => Act::Panics,
        _ => Act::Fails(ErrorKind::Provider),
    });
    let (report, trials) = run(&set_of(ids(4)), &subject, RunOptions::default()).await;
    assert_eq!((counts(&report.total), report.total.rate), ([1, 1, 0, 2], Some(0.25)));
    let errors: Vec<_> = trials.iter().filter_map(|trial| trial.error.clone()).collect();
    let errors: Vec<_> = errors.iter().map(|error| (error.message.as_str(), error.infrastructure)).collect();
    assert_eq!(errors, [("panicked: out of paper", false), ("reach the model", true)]);
    assert_eq!(report.cases[2].failures[0].error.as_deref(), Some("panicked: out of paper"));
}

#[tokio::test]
async fn a_crashed_judge_is_not_masked_by_a_check_that_passes() {
    let scorers: Vec<Arc<dyn agent_eval::Scorer>> = vec![Arc::new(Opinion(None))];
    let options = RunOptions { scorers, ..RunOptions::default() };
    let (report, trials) = run(&set_of(["a"]), &acts(|_| Act::Good), options).await;
    assert_eq!(counts(&report.total), [0, 0, 0, 1]);
    let verdicts: Vec<_> = trials[0].outcomes.iter().map(|outcome| outcome.outcome.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Error]);
    assert_eq!(trials[0].outcomes[1].outcome.reason, "panicked: the judge crashed");
}

#[tokio::test]
async fn checks_of_one_name_are_all_kept_and_unscored_is_no_pass() {
    let same: Vec<Arc<dyn Check>> = vec![
        Arc::new(Holds("same", |_| Outcome::fail("first"))),
        Arc::new(Holds("same", |_| Outcome::unscored("second"))),
        Arc::new(Holds("same", |_| Outcome::pass().with_value(f64::NAN))),
    ];
    let only_unscored = RunOptions { checks: same[1..].to_vec(), ..RunOptions::default() };
    let (report, trials) = run(&set_of(["a"]), &acts(|_| Act::Good), RunOptions { checks: same, ..repeats(1) }).await;
    let said: Vec<_> = trials[0].outcomes.iter().map(|it| (it.check.as_str(), it.outcome.reason.as_str())).collect();
    assert_eq!(said[1..], [("same", "first"), ("same", "second"), ("same", "")]);
    assert_eq!(trials[0].outcomes[3].outcome.value, None);
    assert_eq!(counts(&report.total), [0, 1, 0, 0]);
    let (report, _) = run(&set_of(["a"]), &acts(|_| Act::Good), only_unscored).await;
    assert_eq!(counts(&report.total), [0, 0, 1, 0]);
}

#[tokio::test]
async fn each_trial_has_its_own_agent_and_seed() {
    let seen: Arc<Mutex<Vec<(String, u32, u64)>>> = Arc::default();
    let subject = || {
        let seen = seen.clone();
        acts(move |trial| {
            seen.lock().unwrap().push((trial.key.case.clone(), trial.key.repeat, trial.seed));
            if trial.key.repeat == 0 { Act::Good } else { Act::Bad }
        })
    };
    let (report, _) = run(&set_of(["a", "b"]), &subject(), RunOptions { seed: 1, ..repeats(3) }).await;
    let mut first = std::mem::take(&mut *seen.lock().unwrap());
    run(&set_of(["a", "b"]), &subject(), RunOptions { seed: 1, concurrency: 1.try_into().unwrap(), ..repeats(3) })
        .await;
    let mut again = std::mem::take(&mut *seen.lock().unwrap());
    run(&set_of(["a", "b"]), &subject(), RunOptions { seed: 2, ..repeats(3) }).await;
    let other = std::mem::take(&mut *seen.lock().unwrap());
    first.sort();
    again.sort();
    assert_eq!(first, again);
    let seeds: std::collections::BTreeSet<u64> = first.iter().chain(&other).map(|(.., seed)| *seed).collect();
    assert_eq!(seeds.len(), 12);
    let at: Vec<_> = report.pass_at.iter().map(|at| (at.any.unwrap(), at.all.unwrap())).collect();
    assert_eq!(at.len(), 3);
    assert!((at[1].0 - 2.0 / 3.0).abs() < 1e-12 && at[1].1 == 0.0, "{at:?}");
}

#[tokio::test]
async fn only_the_infrastructure_is_tried_again() {
    let tries: Arc<Mutex<Vec<String>>> = Arc::default();
    let count = tries.clone();
    let subject = acts(move |trial| {
        let mut tries = count.lock().unwrap();
        tries.push(trial.case.id.clone());
        let before = tries.iter().filter(|id| **id == trial.case.id).count();
        match (number(trial), before) {
            (0, 1) => Act::Fails(ErrorKind::Provider),
            (0, _) => Act::Good,
            (1, _) => Act::Bad,
            (2, _) => Act::Fails(ErrorKind::Contract),
            _ => Act::Fails(ErrorKind::Store),
        }
    });
    let (report, trials) = run(&set_of(ids(4)), &subject, RunOptions { retries: 2, ..repeats(1) }).await;
    let got: Vec<_> = trials.iter().map(|trial| (trial.verdict, trial.retries)).collect();
    assert_eq!(got, [(Verdict::Pass, 1), (Verdict::Fail, 0), (Verdict::Error, 0), (Verdict::Error, 2)]);
    assert_eq!(report.total.rate, Some(0.25));
}

/// Fails once, with a service that asks for this wait; then it is good.
fn limited(wait: Duration) -> impl Subject {
    let tries = Arc::new(AtomicU32::new(0));
    subject_fn(move |_| {
        let is_first = tries.fetch_add(1, Relaxed) == 0;
        let agent = agent_fn("limited", move |session, out| {
            Box::pin(async move {
                if is_first {
                    let limited = Error::new(ErrorKind::Provider, "ask the service").transient();
                    let limited = limited.with_retry_after(wait);
                    return Err(Error::new(ErrorKind::Evaluator, "judge").with_source(limited));
                }
                out.record(session, Draft::message(ChatMessage::assistant("good"))).await;
                Ok(StopReason::Completed)
            })
        });
        Box::pin(async { Ok(Arc::new(agent) as _) })
    })
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_the_service_asks_unless_that_is_too_long() {
    for (wait, ends) in [(30, (1, 1, 30)), (24 * 60 * 60, (0, 0, 0))] {
        let began = tokio::time::Instant::now();
        let subject = limited(Duration::from_secs(wait));
        let (report, trials) = run(&set_of(["a"]), &subject, RunOptions { retries: 1, ..repeats(1) }).await;
        assert_eq!((report.total.passed, trials[0].retries, began.elapsed().as_secs()), ends);
        assert_eq!(report.total.errors, 1 - ends.0, "it is an error of the infrastructure");
    }
}

#[tokio::test]
async fn usage_that_no_service_can_mean_is_counted_without_an_overflow() {
    let subject = subject_fn(|_| {
        let agent = agent_fn("liar", |session, out| {
            Box::pin(async move {
                let usage = Usage { input_tokens: u64::MAX, ..Usage::default() };
                out.record(session, Draft::message(ChatMessage::assistant("good")).usage(usage)).await;
                Ok(StopReason::Completed)
            })
        });
        Box::pin(async { Ok(Arc::new(agent) as _) })
    });
    let options = RunOptions { max_tokens: Some(5), concurrency: NonZeroUsize::MIN, ..repeats(3) };
    let report = set_of(["a", "b"]).run(&subject, options).await.unwrap();
    assert_eq!((report.sets[0].total.passed, report.missing), (1, 5), "the budget is spent, and stays so");
    assert_eq!(report.sets[0].total.usage.total(), u64::MAX);
    let both = RunOptions { concurrency: NonZeroUsize::MIN, ..repeats(3) };
    assert_eq!(set_of(["a", "b"]).run(&subject, both).await.unwrap().sets[0].total.passed, 6);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_is_the_infrastructures() {
    let subject = acts(|_| Act::Hangs);
    let options = RunOptions { timeout: Some(Duration::from_mins(1)), ..repeats(1) };
    let report = set_of(["a"]).run(&subject, options).await.unwrap();
    assert_eq!(report.infrastructure_errors, 1);
    assert_eq!(report.sets[0].cases[0].failures[0].error.as_deref(), Some("timed out after 60s"));
    insta::assert_snapshot!(report.verdict(&ExitRules::default()), @"ERROR: 1 of 1 trials failed because of the infrastructure");
    assert_eq!(report.exit_code(&ExitRules::default()), 101);
}

/// A model with a tool that is asked for again and again.
fn caller(calls: usize) -> impl Subject {
    subject_fn(move |_| {
        Box::pin(async move {
            let model =
                (0..calls).fold(ScriptedClient::new(), |model, at| model.calls(format!("{at}"), "look", json!({})));
            let look = tool_fn("look", "Looks.", |_: serde_json::Value, _: ToolContext| async { Ok("nothing") });
            Ok(Arc::new(ChatAgent::new("caller", model.says("good"), ChatAgentOptions::default()).tool(look)) as _)
        })
    })
}

#[tokio::test]
async fn more_than_the_budget_is_a_failure() {
    let case =
        |budget| set_with([json!({ "id": "a", "input": { "text": "go" }, "expected": ["good"], "budget": budget })]);
    let (enough, _) = run(&case(json!({ "turns": 4, "tool_calls": 3 })), &caller(3), RunOptions::default()).await;
    assert_eq!(counts(&enough.total), [1, 0, 0, 0]);
    let (_, trials) = run(&case(json!({ "turns": 3 })), &caller(3), RunOptions::default()).await;
    assert_eq!((trials[0].verdict, trials[0].stop), (Verdict::Fail, Some(StopReason::BudgetExhausted)));
    assert!(trials[0].outcomes.iter().any(|it| it.check == "budget" && it.outcome.verdict == Verdict::Fail));
}

#[tokio::test]
async fn each_turn_is_judged_and_one_that_is_missing_counts() {
    let turns = json!([{ "say": "1", "expected": ["one"] }, { "say": "2", "expected": ["two"] }, { "say": "3", "expected": ["three"] }]);
    let set = set_with([json!({ "id": "a", "input": { "turns": turns } })]);
    let counter = |stops_early: bool| {
        subject_fn(move |_| {
            Box::pin(async move {
                let agent = ScriptedAgent::new("counter").says("one");
                let end = if stops_early { StopReason::BudgetExhausted } else { StopReason::Completed };
                let two = agent_core::Draft::message(agent_core::ChatMessage::assistant("two"));
                Ok(Arc::new(agent.turn(two, end).says("four")) as _)
            })
        })
    };
    let verdicts = |trials: &[agent_eval::Trial]| -> Vec<(Option<usize>, Verdict)> {
        trials[0].outcomes.iter().map(|it| (it.turn, it.outcome.verdict)).collect()
    };
    let (_, trials) = run(&set, &counter(false), RunOptions::default()).await;
    assert_eq!(verdicts(&trials), [(Some(0), Verdict::Pass), (Some(1), Verdict::Pass), (Some(2), Verdict::Fail)]);
    assert_eq!(trials[0].answer, "four");
    let (_, trials) = run(&set, &counter(true), RunOptions::default()).await;
    let early = [(Some(0), Verdict::Pass), (Some(1), Verdict::Pass), (Some(2), Verdict::Fail), (None, Verdict::Fail)];
    assert_eq!(verdicts(&trials), early);
}

#[tokio::test]
async fn a_case_begins_with_its_messages_and_its_state() {
    let messages = json!([
        { "role": "user", "contents": [{ "text": "hello" }] },
        { "role": "assistant", "contents": [{ "text": "hi" }] },
        { "role": "user", "contents": [{ "text": "go" }] },
    ]);
    let set = set_with([json!({ "id": "a", "input": { "messages": messages }, "state": { "tone": "dry" } })]);
    let check = Holds("session", |cx| {
        let said: Vec<String> = cx.session.messages().iter().map(agent_core::ChatMessage::text).collect();
        let tone: Option<String> = cx.session.get("tone");
        Outcome::of(said == ["hello", "hi", "go", "good"] && tone.as_deref() == Some("dry"), || {
            format!("{said:?} {tone:?}")
        })
    });
    let options = RunOptions { checks: vec![Arc::new(check)], ..repeats(1) };
    let (report, _) = run(&set, &acts(|_| Act::Good), options).await;
    assert_eq!(report.cases[0].failures, []);
}

#[tokio::test]
async fn a_run_ends_early_at_the_first_failure_or_without_tokens() {
    let one = std::num::NonZeroUsize::MIN;
    let subject = acts(|trial| if number(trial) == 2 { Act::Bad } else { Act::Good });
    let fail_fast = RunOptions { fail_fast: true, concurrency: one, ..repeats(1) };
    let report = set_of(ids(6)).run(&subject, fail_fast).await.unwrap();
    assert_eq!((counts(&report.sets[0].total), report.missing), ([2, 1, 0, 0], 3));
    assert_eq!(report.exit_code(&ExitRules::default()), 106);
    let few_tokens = RunOptions { max_tokens: Some(25), concurrency: one, ..repeats(1) };
    let report = set_of(ids(6)).run(&subject, few_tokens).await.unwrap();
    assert_eq!((report.sets[0].total.usage.total(), report.missing), (30, 3));
}

#[tokio::test]
async fn a_selection_is_run_in_the_order_of_ids() {
    let options = RunOptions { cases: ["c", "a", "b"].map(str::to_owned).to_vec(), ..repeats(2) };
    let options = RunOptions { filter: Some(Arc::new(|_, case| case.id != "b")), ..options };
    let report = set_of(["d", "c", "b", "a"]).run(&acts(|_| Act::Good), options).await.unwrap();
    let ids: Vec<&str> = report.sets[0].cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!((ids, report.manifest.partial, report.missing), (vec!["a", "c"], true, 0));
    assert_eq!(report.sets[0].cases[0].verdicts, [Verdict::Pass; 2]);
}

#[tokio::test]
async fn time_is_not_looked_at_in_a_replay() {
    let case = json!({ "id": "a", "input": { "text": "go" }, "expected": ["good"], "budget": { "wall_ms": 0 } });
    let wall: Arc<dyn Check> =
        Arc::new(Holds("wall", |cx| Outcome::of(cx.wall.is_none(), || "there is a time".to_owned())));
    let options = |cassettes| RunOptions { cassettes, checks: vec![wall.clone()], ..repeats(1) };
    let subject = subject_fn(|trial| {
        let (mode, hits) = (trial.cassettes, trial.cassette_hits.clone());
        Box::pin(async move {
            if mode == CassetteMode::Replay {
                hits.fetch_add(2, Relaxed);
            }
            Ok(agent(Act::Good))
        })
    });
    let (_, replayed) = run(&set_with([case.clone()]), &subject, options(CassetteMode::Replay)).await;
    assert_eq!((replayed[0].verdict, replayed[0].cassette_hits), (Verdict::Pass, 2));
    let (_, live) = run(&set_with([case]), &subject, options(CassetteMode::Live)).await;
    assert_eq!((live[0].verdict, live[0].cassette_hits), (Verdict::Fail, 0));
}

#[tokio::test]
async fn a_judges_votes_are_in_the_report() {
    let case = |id: &str, human: &str| {
        json!({
            "id": id, "input": { "text": "go" }, "metadata": { "human_verdict": human },
            "checks": [{ "judge": { "rubric": "It is good.", "repeats": 3 } }],
        })
    };
    let votes = [[true, true, true], [false, true, false], [true, false, true]];
    let judge = votes
        .iter()
        .flatten()
        .fold(ScriptedClient::new(), |judge, good| judge.says(json!({ "good": good }).to_string()));
    let options = RunOptions { judge: Some(Arc::new(judge)), concurrency: std::num::NonZeroUsize::MIN, ..repeats(1) };
    let cases = [case("a", "pass"), case("b", "fail"), case("c", "fail")];
    let (report, trials) = run(&set_with(cases), &acts(|_| Act::Good), options).await;
    assert_eq!(trials.iter().map(|trial| &trial.outcomes[0].outcome.votes[..]).collect::<Vec<_>>(), votes);
    let judges = report.judges.unwrap();
    assert_eq!((judges.outcomes, judges.repeats, judges.observed_rate), (3, 3, Some(2.0 / 3.0)));
    assert_eq!((judges.sensitivity, judges.specificity), (Some(1.0), Some(0.5)));
    assert!((judges.corrected_rate.unwrap() - 1.0 / 3.0).abs() < 1e-12 && judges.alpha.is_some());
}

#[tokio::test]
async fn an_evaluator_whose_model_fails_is_the_infrastructures() {
    let broken = |kind| {
        subject_fn(move |_| {
            let judge = evaluate_async_fn("judge", move |_| {
                let cause = Error::new(kind, "ask the model");
                Box::pin(async { Err(Error::new(ErrorKind::Evaluator, "judge the draft").with_source(cause)) })
            });
            let writer = ScriptedAgent::new("writer").says("good");
            Box::pin(async move {
                Ok(Arc::new(LoopAgent::new("refine", writer, LoopOptions::default()).evaluator(judge)) as _)
            })
        })
    };
    let error = async |kind| {
        let (_, trials) = run(&set_of(["a"]), &broken(kind), RunOptions::default()).await;
        let error = trials[0].error.clone().unwrap();
        (error.message, error.infrastructure)
    };
    assert_eq!(error(ErrorKind::Provider).await, ("judge the draft: ask the model".to_owned(), true));
    assert_eq!(error(ErrorKind::Contract).await, ("judge the draft: ask the model".to_owned(), false));
}
