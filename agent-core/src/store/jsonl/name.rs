//! File names for session ids: portable, and never a path.

use std::fmt::Write;

use xxhash_rust::xxh64::xxh64;

const SUFFIX: &str = ".jsonl";
/// The longest escaped id, in bytes; file systems take names of 255.
const LONGEST: usize = 200;
/// How much of a longer one is kept before its hash, in bytes.
const KEPT: usize = 180;
const TAKES_ANY: &str = "a string takes any text";

/// What a file's name says about the session in it.
#[derive(Debug, PartialEq)]
pub(super) enum Named {
    /// Its id.
    Id(String),
    /// Nothing but that its id is long: the header has it.
    Hashed,
}

/// The name of the session's file: what is not in `[a-z0-9_-]` is percent-encoded, capitals too, because some file
/// systems take `A` for `a`. A long id is cut and gets its hash, behind a `~` that no other name has.
pub(super) fn file_name(id: &str) -> String {
    let mut name = escape(id);
    if name.len() > LONGEST {
        name.truncate(KEPT);
        write!(name, "~{:016x}", xxh64(id.as_bytes(), 0)).expect(TAKES_ANY);
    }
    name + SUFFIX
}

/// What `name` says; none if it is not the name of a session's file.
pub(super) fn parse(name: &str) -> Option<Named> {
    let stem = name.strip_suffix(SUFFIX)?;
    if stem.len() == KEPT + 17 && stem.as_bytes()[KEPT] == b'~' {
        return Some(Named::Hashed);
    }
    let id = unescape(stem)?;
    (file_name(&id) == name).then_some(Named::Id(id))
}

fn escape(id: &str) -> String {
    if id.is_empty() {
        return "%".to_owned(); // a name of the suffix alone would be a hidden file
    }
    let mut name = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if plain && !(at == 0 && is_device(id)) {
            name.push(char::from(byte));
        } else {
            write!(name, "%{byte:02x}").expect(TAKES_ANY);
        }
    }
    name
}

fn unescape(stem: &str) -> Option<String> {
    let (first, encoded) = if stem == "%" { ("", "") } else { stem.split_once('%').unwrap_or((stem, "")) };
    let mut bytes = first.as_bytes().to_vec();
    for part in encoded.split('%').filter(|part| !part.is_empty()) {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Whether Windows takes a file of this name for a device, whatever its suffix
/// (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>).
fn is_device(name: &str) -> bool {
    match name.strip_prefix("com").or_else(|| name.strip_prefix("lpt")) {
        Some(number) => matches!(number.as_bytes(), [b'0'..=b'9']),
        None => matches!(name, "con" | "prn" | "aux" | "nul"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_readable_where_the_id_is() {
        let names = ["chat-42", "A/b", "..", "", "é", "con", "com1", "com", "a.jsonl", "\0"].map(file_name);
        insta::assert_snapshot!(names.join("\n"), @r"
        chat-42.jsonl
        %41%2fb.jsonl
        %2e%2e.jsonl
        %.jsonl
        %c3%a9.jsonl
        %63on.jsonl
        %63om1.jsonl
        com.jsonl
        a%2ejsonl.jsonl
        %00.jsonl
        ");
    }

    #[test]
    fn a_long_id_is_cut_and_hashed() {
        let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
        assert_eq!(parse(&file_name(&longest)), Some(Named::Id(longest)));
        insta::assert_snapshot!(file_name(&longer).replace(&"x".repeat(KEPT), "[180 x]"), @"[180 x]~f08e027e2cc3e4da.jsonl");
        assert_eq!(parse(&file_name(&longer)), Some(Named::Hashed));
    }

    #[test]
    fn a_name_that_the_store_does_not_write_is_none() {
        for name in [
            "notes.txt",
            "A.jsonl",
            "a b.jsonl",
            "%2.jsonl",
            "%zz.jsonl",
            "%61.jsonl",
            "a%.jsonl",
            ".jsonl",
            "%ff.jsonl",
            "a~1.jsonl",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_gives_its_id_back(id in any::<String>()) {
            let name = file_name(&id);
            prop_assert!(name.len() < 255);
            prop_assert!(name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'%' | b'~' | b'.')));
            match parse(&name) {
                Some(Named::Id(found)) => prop_assert_eq!(found, id),
                Some(Named::Hashed) => prop_assert!(id.len() * 3 > LONGEST),
                None => prop_assert!(false, "{} is not recognized", name),
            }
        }
    }
}
