//! Texts for models, kept short, and those that say nothing.

/// Whether there is nothing but white space.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// The text, or its two ends if it has more than `longest` characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (longest / 2, longest - longest / 2);
    format!("{} [… {} characters left out …] {}", &text[..at(head)], length - longest, &text[at(length - tail)..])
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 2), "ä [… 2 characters left out …] ß");
    }
}
