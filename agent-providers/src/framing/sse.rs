//! Server-sent events, after the WHATWG HTML standard, section 9.2.6, but for the end: a last event that no blank line
//! follows counts.

use super::{
    Frame, FrameError, Framing,
    lines::{Lines, check},
    text,
};

/// A decoder of server-sent events. Events without data are none.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    lines: Lines,
    event: Event,
}

#[derive(Debug, Default)]
struct Event {
    name: Option<String>,
    data: Option<Vec<u8>>,
}

impl Framing for Sse {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), FrameError> {
        let Self { lines, event } = self;
        lines.push(bytes, |line| match line {
            [] => event.close(false, out),
            line => event.field(line),
        })
    }

    fn end(&mut self, out: &mut Vec<Frame>) -> Result<(), FrameError> {
        if let Some(line) = self.lines.end() {
            self.event.field(&line)?;
        }
        self.event.close(true, out)
    }
}

impl Event {
    fn field(&mut self, line: &[u8]) -> Result<(), FrameError> {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match name {
            b"data" => self.add_data(value),
            b"event" => {
                self.name = Some(text(value)?);
                Ok(())
            }
            // A comment (no name), `id`, `retry`, and whatever else: nothing that model services use.
            _ => Ok(()),
        }
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), FrameError> {
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) => {
                check(data.len().saturating_add(value.len()))?;
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        Ok(())
    }

    fn close(&mut self, unclosed: bool, out: &mut Vec<Frame>) -> Result<(), FrameError> {
        let Self { name, data } = std::mem::take(self);
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            out.push(Frame { event: name, data: text(&data)?, unclosed });
        }
        Ok(())
    }
}
