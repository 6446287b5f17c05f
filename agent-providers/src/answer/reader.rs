//! Bytes into an answer, without I/O.

use std::collections::VecDeque;

use agent_core::ChatUpdate;

use super::{Answer, Decode, WireEvent};
use crate::{
    ProviderError, ProviderErrorKind,
    framing::{Frame, Framing},
};

/// Reads one answer from the bytes of one stream. After an error, and after the answer's end, it reads nothing more.
#[derive(Debug)]
pub(crate) struct Reader<F, D> {
    framing: F,
    decode: D,
    answer: Option<Answer>,
    ready: VecDeque<ChatUpdate>,
    frames: Vec<Frame>,
    events: Vec<WireEvent>,
}

impl<F: Framing, D: Decode> Reader<F, D> {
    pub(crate) fn new(framing: F, decode: D, answer: Answer) -> Self {
        let (ready, frames, events) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { framing, decode, answer: Some(answer), ready, frames, events }
    }

    /// The next update that the bytes so far gave.
    pub(crate) fn pop(&mut self) -> Option<ChatUpdate> {
        self.ready.pop_front()
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        let framed = self.framing.push(bytes, &mut self.frames);
        // Whole frames count first: what is wrong behind the answer's end does not matter, however the bytes are cut.
        self.digest()?;
        match framed {
            Err(error) if self.answer.is_some() => {
                Err(ProviderError::new(ProviderErrorKind::BadFrame, error.to_string()))
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

fn cut() -> ProviderError {
    let words = "the stream ended before the service said that the answer is complete";
    ProviderError::new(ProviderErrorKind::Truncated, words)
}
