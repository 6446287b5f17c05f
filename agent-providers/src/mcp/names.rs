//! Names of tools as model services take them.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh64::xxh64;

/// The longest name that every service takes.
const LONGEST: usize = 64;

/// A name for each of a server's tools, in their order: letters, digits, `_` and `-`, 64 at most, no two the same.
/// None for a name that came before: a server cannot tell the two apart either.
///
/// A name that is valid and free stays as it is. Another's odd characters become `_`; if it is too long, or so another's,
/// it ends with a hash of the server's own name, so that it is the same in every process, whatever the order.
pub(super) fn unique<'a>(prefix: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<Option<String>> {
    let prefix: String = cleaned(prefix).collect();
    let mut seen = HashSet::new();
    let names = names.into_iter().map(|name| seen.insert(name).then(|| (name, format!("{prefix}{name}"))));
    let names = names.collect::<Vec<_>>();
    let mut wanted = HashMap::<String, usize>::new();
    names.iter().flatten().for_each(|(_, full)| *wanted.entry(clean(full)).or_default() += 1);
    let name_of = |(name, full): (&str, String)| {
        let cleaned = clean(&full);
        let is_free = wanted[&cleaned] == 1 || cleaned == full;
        if is_free && cleaned.len() <= LONGEST { cleaned } else { marked(&cleaned, name) }
    };
    names.into_iter().map(|name| name.map(name_of)).collect()
}

/// A name made valid, of any length.
fn clean(name: &str) -> String {
    if name.is_empty() { "tool".to_owned() } else { cleaned(name).collect() }
}

fn cleaned(name: &str) -> impl Iterator<Item = char> {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
}

/// A valid name of its own for what the server calls `original`.
fn marked(cleaned: &str, original: &str) -> String {
    let mark = format!("_{:08x}", xxh64(original.as_bytes(), 0) >> 32);
    // What is cleaned is ASCII.
    format!("{}{mark}", &cleaned[..cleaned.len().min(LONGEST - mark.len())])
}

/// One name, valid and not too long.
pub(super) fn single(name: &str) -> String {
    unique("", [name]).remove(0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::unique;

    #[test]
    fn names_are_kept_where_they_can_be() {
        let long = "x".repeat(70);
        let names = unique("fs_", ["read", "a.b", "a_b", "a b", "read", "grüße", long.as_str(), ""]);
        let names: Vec<_> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        insta::assert_snapshot!(names.join("\n"), @"
        fs_read
        fs_a_b_0091b639
        fs_a_b
        fs_a_b_10dda12a
        -
        fs_gr__e
        fs_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_f794608f
        fs_
        ");
    }

    proptest! {
        #[test]
        fn names_are_valid_and_no_two_are_the_same(names in prop::collection::vec(".{0,80}", 0..20), prefix in "[a-z._]{0,30}") {
            let unique = unique(&prefix, names.iter().map(String::as_str));
            prop_assert_eq!(unique.len(), names.len());
            let given: Vec<_> = unique.into_iter().flatten().collect();
            let valid = |name: &String| {
                (1..=64).contains(&name.len())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            };
            prop_assert!(given.iter().all(valid), "{given:?}");
            let different: std::collections::HashSet<_> = given.iter().collect();
            prop_assert_eq!(different.len(), given.len());
        }
    }
}
