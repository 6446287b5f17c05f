//! The end of what a server says.

/// The end of a text.
#[derive(Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    /// How much is kept, in bytes and in lines.
    const BYTES: usize = 4 * 1024;
    const LINES: usize = 20;

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // With room, so that not every piece moves what is kept.
        if self.bytes.len() > 2 * Self::BYTES {
            self.bytes.drain(..self.bytes.len() - Self::BYTES);
            self.is_cut = true;
        }
    }

    /// The last lines, after `redact` took out what must not be told.
    pub(super) fn text(&self, redact: impl FnOnce(&str) -> String) -> String {
        let begin = self.bytes.len().saturating_sub(Self::BYTES);
        let text = String::from_utf8_lossy(&self.bytes[begin..]);
        // Half a word may be half a key.
        let words = match text.split_once(char::is_whitespace) {
            Some((_, rest)) if self.is_cut || begin > 0 => rest,
            None if self.is_cut || begin > 0 => "",
            Some(_) | None => &text,
        };
        let text = redact(words);
        let lines = text.trim_end().lines().collect::<Vec<_>>();
        lines[lines.len().saturating_sub(Self::LINES)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = Tail::default();
        (0..5_000).for_each(|n| tail.add(format!("line {n}\n").as_bytes()));
        let kept = (4_980..5_000).map(|n| format!("line {n}")).collect::<Vec<_>>();
        assert_eq!(tail.text(str::to_owned), kept.join("\n"));
        assert!(tail.bytes.len() <= 2 * Tail::BYTES);
    }

    #[test]
    fn a_word_that_is_cut_is_left_out() {
        for before in [0, Tail::BYTES, 3 * Tail::BYTES] {
            let mut tail = Tail::default();
            tail.add("x".repeat(before).as_bytes());
            tail.add(b"secret");
            tail.add(format!("\n{}", "y".repeat(Tail::BYTES - 4)).as_bytes());
            assert_eq!(tail.text(str::to_owned), "y".repeat(Tail::BYTES - 4), "after {before}");
        }
    }
}
