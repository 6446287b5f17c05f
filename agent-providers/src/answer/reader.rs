//! Bytes into an answer, without I/O.

use std::collections::VecDeque;

use agent_core::ChatUpdate;

use super::{Answer, Decode, WireEvent};
use crate::{
    ProviderError, ProviderErrorKind,
    framing::{Frame, Framing, LONGEST_FRAME},
};

/// The longest stream, in bytes. Several images are less; more is a service that never ends, and would fill the memory.
const LONGEST_ANSWER: usize = 8 * LONGEST_FRAME;

/// The most tool calls in one answer. More is a service that repeats itself.
const MOST_CALLS: usize = 4096;

/// Reads one answer from the bytes of one stream. After an error, and after the answer's end, it reads nothing more.
#[derive(Debug)]
pub(crate) struct Reader<F, D> {
    framing: F,
    decode: D,
    answer: Option<Answer>,
    /// How many bytes came.
    read: usize,
    ready: VecDeque<ChatUpdate>,
    frames: Vec<Frame>,
    events: Vec<WireEvent>,
}

impl<F: Framing, D: Decode> Reader<F, D> {
    pub(crate) fn new(framing: F, decode: D, answer: Answer) -> Self {
        let (ready, frames, events) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { framing, decode, answer: Some(answer), read: 0, ready, frames, events }
    }

    /// The next update that the bytes so far gave.
    pub(crate) fn pop(&mut self) -> Option<ChatUpdate> {
        self.ready.pop_front()
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        self.read = self.read.saturating_add(bytes.len());
        let framed = self.framing.push(bytes, &mut self.frames);
        // Whole frames count first: what is wrong behind the answer's end does not matter, however the bytes are cut.
        self.digest()?;
        match framed {
            Err(error) if self.answer.is_some() => {
                Err(ProviderError::new(ProviderErrorKind::BadFrame, error.to_string()))
            }
            Ok(()) if self.answer.is_some() && self.read > LONGEST_ANSWER => {
                let words = format!("the answer is longer than {LONGEST_ANSWER} bytes");
                Err(ProviderError::new(ProviderErrorKind::BadFrame, words))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Takes the end of the stream. If the answer is not complete by then, it never will be.
    pub(crate) fn end(&mut self) -> Result<(), ProviderError> {
        let framed = self.framing.end(&mut self.frames);
        self.digest()?;
        let Some(answer) = self.answer.take_if(|answer| framed.is_ok() && D::END_OF_STREAM_ENDS && answer.has_stop())
        else {
            return if self.answer.is_some() { Err(cut()) } else { Ok(()) };
        };
        self.complete(answer);
        Ok(())
    }

    /// Reads the frames that came, up to the answer's end.
    fn digest(&mut self) -> Result<(), ProviderError> {
        for frame in std::mem::take(&mut self.frames) {
            let Some(answer) = &mut self.answer else { break };
            let read = self.decode.frame(&frame, &mut self.events);
            for event in self.events.drain(..) {
                answer.apply(event, &mut self.ready);
            }
            read?;
            check_calls(answer.calls())?;
            if let Some(answer) = self.answer.take_if(|answer| answer.is_ended()) {
                self.complete(answer);
            }
        }
        Ok(())
    }

    fn complete(&mut self, mut answer: Answer) {
        self.decode.finish(&mut self.events);
        for event in self.events.drain(..) {
            answer.apply(event, &mut self.ready);
        }
        self.ready.push_back(ChatUpdate::Done(answer.finish()));
    }
}

/// Refuses an answer of so many tool calls if that is too many.
pub(crate) fn check_calls(calls: usize) -> Result<(), ProviderError> {
    if calls <= MOST_CALLS {
        return Ok(());
    }
    let words = format!("the answer has more than {MOST_CALLS} tool calls");
    Err(ProviderError::new(ProviderErrorKind::BadFrame, words))
}

fn cut() -> ProviderError {
    let words = "the stream ended before the service said that the answer is complete";
    ProviderError::new(ProviderErrorKind::Truncated, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::FrameError;

    /// A protocol without events.
    struct Silence;

    impl Framing for Silence {
        fn push(&mut self, _: &[u8], _: &mut Vec<Frame>) -> Result<(), FrameError> {
            Ok(())
        }

        fn end(&mut self, _: &mut Vec<Frame>) -> Result<(), FrameError> {
            Ok(())
        }
    }

    impl Decode for Silence {
        const END_OF_STREAM_ENDS: bool = true;

        fn frame(&mut self, _: &Frame, _: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
            Ok(())
        }
    }

    #[test]
    fn a_stream_without_an_end_is_refused() {
        let mut reader = Reader::new(Silence, Silence, Answer::new("test", "asked"));
        let bytes = vec![b' '; LONGEST_FRAME];
        for _ in 0..8 {
            reader.push(&bytes).unwrap();
        }
        let error = reader.push(&bytes).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ProviderErrorKind::BadFrame, "the answer is longer than 268435456 bytes")
        );
    }
}
