//! Sequences: tool calls and drafts.

use std::collections::HashSet;

/// F1 of the longest common subsequence of two lists of names: precision is its share of the actual ones, recall of
/// the expected ones. Two empty lists agree (1); an empty one and another do not (0). O(expected × actual).
pub fn lcs_f1(expected: &[&str], actual: &[&str]) -> f64 {
    if expected.is_empty() || actual.is_empty() {
        return if expected.is_empty() && actual.is_empty() { 1.0 } else { 0.0 };
    }
    let mut row = vec![0_usize; actual.len() + 1];
    for wanted in expected {
        let mut diagonal = 0;
        for (at, found) in actual.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if wanted == found { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    2.0 * row[actual.len()] as f64 / (expected.len() + actual.len()) as f64
}

/// What a draft is beside the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Draft {
    /// New.
    Distinct,
    /// The same as the one before it.
    Stall,
    /// The same as an older one, with a different one in between.
    Oscillation,
}

/// Classifies the drafts of one trial by their digests, in order.
pub fn classify_drafts(digests: &[u64]) -> Vec<Draft> {
    let mut seen = HashSet::new();
    let mut previous = None;
    let classify = |digest: u64| {
        let is_known = !seen.insert(digest);
        match previous.replace(digest) {
            Some(previous) if previous == digest => Draft::Stall,
            Some(_) if is_known => Draft::Oscillation,
            Some(_) | None => Draft::Distinct,
        }
    };
    digests.iter().copied().map(classify).collect()
}
