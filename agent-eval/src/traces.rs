//! Which events end the iterations that were judged.

use std::sync::Arc;

use agent_loop::IterationRecord;

use crate::{IterationTrace, Trial};

/// An event that ends an iteration: its place, how deep its loop is, the loop, and the iteration.
type End = (usize, usize, Arc<str>, IterationRecord);

/// For each event the iteration that it ends, if it was judged. Of a conversation only the last turn's are judged, and
/// of nested loops only one's: the outermost of those whose records are the same as what was judged.
pub(crate) fn traces(trial: &Trial) -> Vec<Option<&IterationTrace>> {
    let from = trial.turns.last().copied().unwrap_or_default();
    let ended = |(at, event)| IterationRecord::of(event).map(|(name, record)| (at, event.path.len(), name, record));
    let mut ends: Vec<End> = trial.events.iter().enumerate().skip(from).filter_map(ended).collect();
    let is_judged = |name: &Arc<str>| {
        let mut records = ends.iter().filter(|end| end.2 == *name).map(|end| &end.3);
        let same = trial.iterations.iter().zip(records.by_ref()).filter(|(trace, record)| is_of(trace, record)).count();
        // A time-out may have come after the iteration was judged, and before its event was kept.
        records.next().is_none() && same + 1 >= trial.iterations.len()
    };
    let judged = ends.iter().filter(|end| is_judged(&end.2)).min_by_key(|end| end.1).map(|end| end.2.clone());
    ends.retain(|end| judged.as_ref() == Some(&end.2));
    let mut traces = vec![None; trial.events.len()];
    for ((at, ..), trace) in ends.iter().zip(&trial.iterations) {
        traces[*at] = Some(trace);
    }
    traces
}

fn is_of(trace: &IterationTrace, record: &IterationRecord) -> bool {
    (trace.digest, &trace.by, &trace.feedback, trace.usage, trace.millis)
        == (record.digest, &record.by, &record.feedback, record.usage, record.millis)
}
