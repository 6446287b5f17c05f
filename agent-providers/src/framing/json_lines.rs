//! JSON lines: one JSON document a line.

use super::{Frame, FrameError, Framing, lines::Lines, text};

/// A decoder of JSON lines; blank lines are none.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    lines: Lines,
}

impl Framing for JsonLines {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), FrameError> {
        self.lines.push(bytes, |line| keep(line, false, out))
    }

    fn end(&mut self, out: &mut Vec<Frame>) -> Result<(), FrameError> {
        match self.lines.end() {
            Some(line) => keep(&line, true, out),
            None => Ok(()),
        }
    }
}

fn keep(line: &[u8], unclosed: bool, out: &mut Vec<Frame>) -> Result<(), FrameError> {
    if !line.trim_ascii().is_empty() {
        out.push(Frame { event: None, data: text(line)?, unclosed });
    }
    Ok(())
}
