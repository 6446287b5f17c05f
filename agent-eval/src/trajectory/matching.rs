//! Pairs of expected and made calls.

/// A largest set of pairs in which each call stands once, in any order: for each expected call the one made. Kuhn's
/// algorithm (augmenting paths), O(expected² × made).
pub(super) fn maximum_matching(fits: &[Vec<bool>], made: usize) -> Vec<Option<usize>> {
    let mut taken: Vec<Option<usize>> = vec![None; made];
    for expected in 0..fits.len() {
        augment(fits, expected, &mut vec![false; made], &mut taken);
    }
    let mut pairs = vec![None; fits.len()];
    for (at, expected) in taken.into_iter().enumerate() {
        if let Some(expected) = expected {
            pairs[expected] = Some(at);
        }
    }
    pairs
}

fn augment(fits: &[Vec<bool>], expected: usize, seen: &mut [bool], taken: &mut [Option<usize>]) -> bool {
    for at in 0..taken.len() {
        if fits[expected][at] && !seen[at] {
            seen[at] = true;
            if taken[at].is_none_or(|other| augment(fits, other, seen, taken)) {
                taken[at] = Some(expected);
                return true;
            }
        }
    }
    false
}

/// A longest set of pairs in the same order: for each expected call the one made. O(expected × made).
pub(super) fn common_subsequence(fits: &[Vec<bool>], made: usize) -> Vec<Option<usize>> {
    // longest[e][m]: of the expected calls from e on and the made ones from m on.
    let mut longest = vec![vec![0_usize; made + 1]; fits.len() + 1];
    for expected in (0..fits.len()).rev() {
        for at in (0..made).rev() {
            let skip = longest[expected + 1][at].max(longest[expected][at + 1]);
            let both = longest[expected + 1][at + 1] + usize::from(fits[expected][at]);
            longest[expected][at] = skip.max(both);
        }
    }
    let mut pairs = vec![None; fits.len()];
    let (mut expected, mut at) = (0, 0);
    while expected < fits.len() && at < made {
        if fits[expected][at] && longest[expected][at] == longest[expected + 1][at + 1] + 1 {
            pairs[expected] = Some(at);
            (expected, at) = (expected + 1, at + 1);
        } else if longest[expected + 1][at] >= longest[expected][at + 1] {
            expected += 1;
        } else {
            at += 1;
        }
    }
    pairs
}
