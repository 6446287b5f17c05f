//! Texts that people read.

/// The text, cut to so many characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Names in backticks, with commas.
pub(crate) fn listed<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The known name that a wrong one was probably meant to be.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|name| (strsim::damerau_levenshtein(wrong, name), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + wrong.chars().count() / 4).then_some(name)
}
