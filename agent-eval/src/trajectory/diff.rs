//! Expected and made calls side by side, for a reader.

use agent_core::ToolCall;

use crate::text::cut;

/// How many characters of a call are shown.
const LONGEST: usize = 300;

/// One line of a diff.
pub(super) enum Line {
    /// Expected, and made.
    Both { expected: String, made: String },
    /// Expected, and not made.
    Missing(String),
    /// Made, and not expected.
    Extra(String),
}

/// A call on one line.
pub(super) fn call(call: &ToolCall) -> String {
    format!("{} {}", call.name, call.arguments)
}

/// One line a call: `-` is expected and not made, `+` is made and not expected. What the mode does not mind is in
/// parentheses instead.
pub(super) fn render(lines: &[Line], missing_counts: bool, extra_counts: bool) -> String {
    let render = |line: &Line| {
        let (mark, call) = match line {
            Line::Both { made, .. } => ("  ", made),
            Line::Missing(call) => (if missing_counts { "- " } else { "  (not made) " }, call),
            Line::Extra(call) => (if extra_counts { "+ " } else { "  (also made) " }, call),
        };
        format!("{mark}{}", cut(call, LONGEST))
    };
    lines.iter().map(render).collect::<Vec<_>>().join("\n")
}
