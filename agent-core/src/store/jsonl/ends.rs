//! Where the files that were used last end.

use std::{collections::HashMap, mem};

use super::file::Position;

/// The ends of the files that were used last, by file name. At most twice [`Ends::GENERATION`] of them: when the young
/// ones are so many, they become the old ones, and those who were old are forgotten.
#[derive(Default)]
pub(super) struct Ends {
    young: HashMap<String, Position>,
    old: HashMap<String, Position>,
}

impl Ends {
    const GENERATION: usize = 1024;

    pub(super) fn get(&self, name: &str) -> Option<Position> {
        self.young.get(name).or_else(|| self.old.get(name)).cloned()
    }

    pub(super) fn keep(&mut self, name: String, end: Position) {
        if self.young.len() >= Self::GENERATION && !self.young.contains_key(&name) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(name, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten_in_time() {
        let mut ends = Ends::default();
        ends.keep("idle".to_owned(), Position::default());
        for other in 0..5 * Ends::GENERATION {
            ends.keep("busy".to_owned(), Position { version: other as u64, ..Position::default() });
            ends.keep(other.to_string(), Position::default());
        }
        assert_eq!(ends.get("busy").map(|end| end.version), Some(5 * Ends::GENERATION as u64 - 1));
        assert!(ends.get("idle").is_none());
        assert!(ends.young.len() + ends.old.len() <= 2 * Ends::GENERATION);
    }
}
