//! Bytes into lines that end with LF, CR or CRLF, wherever the chunks are cut.

use super::{FrameError, LONGEST_FRAME};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A buffer of the line that is not ended yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// The last byte was CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first line, whose byte order mark is no content, is behind.
    begun: bool,
}

impl Lines {
    /// Calls `each` with every line that `bytes` complete, in order.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end..]);
            if self.partial.is_empty() {
                check(line.len())?;
                each(Self::content(&mut self.begun, line))?;
            } else {
                self.keep(line)?;
                let whole = std::mem::take(&mut self.partial);
                each(Self::content(&mut self.begun, &whole))?;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                rest => &rest[1..],
            };
        }
        self.keep(bytes)
    }

    /// The last line, if no line end follows it.
    pub(super) fn end(&mut self) -> Option<Vec<u8>> {
        let last = std::mem::take(&mut self.partial);
        let content = Self::content(&mut self.begun, &last);
        (!content.is_empty()).then(|| content.to_vec())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        check(self.partial.len().saturating_add(bytes.len()))?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn content<'a>(begun: &mut bool, line: &'a [u8]) -> &'a [u8] {
        if std::mem::replace(begun, true) { line } else { line.strip_prefix(BOM).unwrap_or(line) }
    }
}

/// Refuses a frame that is too long.
pub(super) fn check(len: usize) -> Result<(), FrameError> {
    if len > LONGEST_FRAME { Err(FrameError::TooLong) } else { Ok(()) }
}
