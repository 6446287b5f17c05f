//! A page of ids as a range of an index.

/// The ids from `low` on, and before `high` if there is one, in byte order.
#[derive(Debug, PartialEq)]
pub(super) struct IdRange {
    pub(super) low: String,
    pub(super) high: Option<String>,
}

impl IdRange {
    /// The ids that begin with `prefix` and come after `after`.
    pub(super) fn of(prefix: &str, after: Option<&str>) -> Self {
        // Nothing is between a text and the same one with a NUL behind it.
        let low =
            after.filter(|after| *after >= prefix).map_or_else(|| prefix.to_owned(), |after| format!("{after}\0"));
        Self { low, high: end_of(prefix) }
    }
}

/// The least text that comes after all that begin with `prefix`, if there is one. In UTF-8 the order of bytes is that
/// of the characters.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // A range of characters leaves out what is none.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ends_step_over_what_is_no_character() {
        let ends = ["", "a", "a\u{7f}", "\u{d7ff}", "a\u{10ffff}", "\u{10ffff}"].map(end_of);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(ends, [None, some("b"), some("a\u{80}"), some("\u{e000}"), some("b"), None]);
    }

    proptest! {
        #[test]
        fn a_range_holds_what_begins_with_the_prefix_and_comes_after(
            id in "[ab\u{0}é\u{10ffff}]{0,4}",
            prefix in "[ab\u{0}é\u{10ffff}]{0,2}",
            after in proptest::option::of("[ab\u{0}é\u{10ffff}]{0,4}"),
        ) {
            let IdRange { low, high } = IdRange::of(&prefix, after.as_deref());
            let found = id >= low && high.is_none_or(|high| id < high);
            prop_assert_eq!(found, id.starts_with(&prefix) && after.is_none_or(|after| id > after));
        }
    }
}
