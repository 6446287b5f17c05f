//! What a draft may not have: a compiler reads files for it, with the rights of whoever runs it.

/// Words that no function of a task needs. They are found as words wherever they are, so that a new name (`use … as`)
/// does not hide them; macros could put them, or a module's path, together.
const WORDS: [&str; 10] = [
    "include",
    "include_str",
    "include_bytes",
    "option_env",
    "asm",
    "global_asm",
    "naked_asm",
    "debugger_visualizer",
    "macro_rules",
    "proc_macro",
];

/// Why the draft is not compiled, if it is not.
pub(super) fn found_in(draft: &str) -> Option<String> {
    let code = draft.split('\n').map(without_comment).collect::<Vec<_>>().join("\n");
    let words = words(&code);
    let after = |at: usize| words.get(at).map(|(start, word)| &code[start + word.len()..]);
    let why = |word: &str| format!("`{word}`; write the function without it.");
    words.iter().enumerate().find_map(|(at, (_, word))| match *word {
        "env" => {
            let behind = after(at)?.trim_start();
            let renamed = || words.get(at + 1).is_some_and(|(_, next)| *next == "as" && behind.starts_with(next));
            let is_macro = behind.starts_with(['!', '/']) || renamed();
            is_macro.then(|| why("env!"))
        }
        // A module whose body is not here is in another file, and `#[path]` says in which.
        "mod" => {
            let (start, name) = words.get(at + 1).copied().unwrap_or_default();
            let is_here = after(at)?.trim_start().starts_with(name)
                && start > 0
                && code[start + name.len()..].trim_start().starts_with('{');
            (!is_here).then(|| "a module in another file; write the function without it.".to_owned())
        }
        word => WORDS.contains(&word).then(|| why(word)),
    })
}

/// The line without its comment. One that may end a text or another comment stays: it may not be one.
fn without_comment(line: &str) -> &str {
    match line.split_once("//") {
        Some((code, comment)) if !comment.contains('"') && !comment.contains("*/") => code,
        _ => line,
    }
}

/// Identifiers and keywords, and where they begin.
fn words(code: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let word = &word[..word.find(|c| !is_part(c)).unwrap_or(word.len())];
        words.push((code.len() - rest.len() + start, word));
        rest = &rest[start + word.len()..];
    }
    words
}
