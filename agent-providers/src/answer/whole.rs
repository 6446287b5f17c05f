//! How the protocols' tests read a stream that is whole.

use agent_core::{ChatResponse, ChatUpdate};

use super::{Answer, Decode, Reader};
use crate::{ProviderError, framing::Framing};

/// What a stream of these pieces comes to; it ends behind the last.
pub(crate) fn read_whole<F: Framing, D: Decode>(
    (framing, decode): (F, D),
    answer: Answer,
    pieces: impl IntoIterator<Item = String>,
) -> Result<ChatResponse, ProviderError> {
    let mut reader = Reader::new(framing, decode, answer);
    for piece in pieces {
        reader.push(piece.as_bytes())?;
    }
    reader.end()?;
    loop {
        match reader.pop() {
            Some(ChatUpdate::Delta(_)) => {}
            Some(ChatUpdate::Done(response)) => return Ok(response),
            None => panic!("neither an answer nor an error"),
        }
    }
}
