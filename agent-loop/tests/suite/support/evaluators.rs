use std::sync::{Arc, Mutex};

use agent_core::{Error, ErrorKind, Usage};
use agent_loop::{LoopContext, LoopEvaluation, LoopEvaluator, evaluate_async_fn, evaluate_fn};

/// A list of words; clones share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, word: impl Into<String>) {
        self.0.lock().unwrap().push(word.into());
    }

    pub(crate) fn get(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Says `f1`, `f2`, … before this iteration; then it is satisfied.
pub(crate) fn until(iteration: u32) -> impl LoopEvaluator + 'static {
    evaluate_fn("until", move |cx| {
        if cx.iteration < iteration {
            LoopEvaluation::feedback(format!("f{}", cx.iteration))
        } else {
            LoopEvaluation::Satisfied
        }
    })
}

/// Objects without a word, for ever.
pub(crate) fn never() -> impl LoopEvaluator + 'static {
    evaluate_fn("never", |_| LoopEvaluation::again())
}

/// The k-th evaluation after the k-th iteration; the last one from then on.
pub(crate) fn scripted(name: &str, evaluations: &[LoopEvaluation]) -> impl LoopEvaluator + 'static {
    let evaluations = evaluations.to_vec();
    evaluate_fn(name, move |cx| evaluations[(cx.iteration as usize - 1).min(evaluations.len() - 1)].clone())
}

/// Answers from a function and notes each time that it is asked.
pub(crate) fn noted<F>(name: &'static str, log: &Log, f: F) -> impl LoopEvaluator + 'static
where
    F: Fn(&LoopContext<'_>) -> LoopEvaluation + Send + Sync + 'static,
{
    let log = log.clone();
    evaluate_fn(name, move |cx| {
        log.add(format!("{name}#{}", cx.iteration));
        f(cx)
    })
}

/// Bills a model call each time; answers as the function says, where none is a failure.
pub(crate) fn judge<F>(bill: Usage, f: F) -> impl LoopEvaluator + 'static
where
    F: Fn(u32) -> Option<LoopEvaluation> + Send + Sync + 'static,
{
    evaluate_async_fn("judge", move |cx| {
        cx.run.bill(bill);
        let answer = f(cx.iteration).ok_or_else(|| Error::new(ErrorKind::Evaluator, "ask the judge"));
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer
        })
    })
}
