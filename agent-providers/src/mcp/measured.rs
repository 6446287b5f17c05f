//! A server's output, with an eye on the length of its messages.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::watch,
};

/// The longest message that is read, in bytes; a longer one is passed over.
pub(super) const LONGEST: usize = DEFAULT_MAX_LINE_LENGTH;

/// An output of lines that counts those which are too long to be read.
pub(super) struct Measured<R> {
    output: R,
    /// Of the current line, so far.
    length: usize,
    too_long: watch::Sender<u32>,
}

impl<R> Measured<R> {
    pub(super) fn new(output: R, too_long: watch::Sender<u32>) -> Self {
        Self { output, length: 0, too_long }
    }

    fn count(&mut self, bytes: &[u8]) {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.add(end - begin);
            self.length = 0;
            begin = end + 1;
        }
        self.add(bytes.len() - begin);
    }

    fn add(&mut self, bytes: usize) {
        let before = self.length;
        self.length += bytes;
        if before < LONGEST && self.length >= LONGEST {
            self.too_long.send_modify(|lines| *lines += 1);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Measured<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buffer))?;
        self.count(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}
