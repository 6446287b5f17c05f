//! Which calls of a history are open: asked for, asked about, answered, or done.

use std::{collections::HashMap, sync::Arc};

use crate::{ChatMessage, Content, Error, ErrorKind, Result, Session, ToolCall};

/// One call of a history. Services reuse ids, so an id names the first call that still fits.
#[derive(Debug, Clone)]
pub(crate) struct TrackedCall {
    pub(crate) call: Asked,
    /// The message that asks for it.
    pub(crate) message: usize,
    /// Who wrote that message.
    pub(crate) author: Option<Arc<str>>,
    /// Whether the history holds the call itself, not only the question about it.
    pub(crate) called: bool,
    /// Whether the caller was asked about it.
    pub(crate) requested: bool,
    /// What the caller answered.
    pub(crate) answer: Option<Answer>,
    /// The message that holds its result, and the result's place in it.
    pub(crate) result: Option<(usize, usize)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Call(ToolCall),
    Invalid { id: String, name: String, why: String },
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) approved: bool,
    pub(crate) reason: Option<String>,
}

impl Asked {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Call(call) => &call.id,
            Self::Invalid { id, .. } => id,
        }
    }
}

/// The calls of a history in order, each with what became of it. Linear in the history.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    pub(crate) calls: Vec<TrackedCall>,
    /// Answers that fit no open request: the message, and the id that they name.
    unmatched: Vec<(usize, String)>,
}

impl CallLog {
    pub(crate) fn of(messages: &[ChatMessage]) -> Self {
        let mut log = Self::default();
        // The calls of each id that have no result yet, oldest first.
        let mut open: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            for (part, content) in message.contents.iter().enumerate() {
                log.read(&mut open, (at, part), message, content);
            }
        }
        log
    }

    fn read(
        &mut self,
        open: &mut HashMap<String, Vec<usize>>,
        (at, part): (usize, usize),
        message: &ChatMessage,
        content: &Content,
    ) {
        match content {
            Content::ToolCall(call) => self.open(open, Asked::Call(call.clone()), (at, message), true),
            Content::InvalidToolCall { id, name, why, .. } => {
                let asked = Asked::Invalid { id: id.clone(), name: name.clone(), why: why.clone() };
                self.open(open, asked, (at, message), true);
            }
            Content::ApprovalRequest(call) => {
                let waiting = open.get(&call.id).into_iter().flatten().copied().find(|&i| !self.calls[i].requested);
                match waiting {
                    Some(i) => self.calls[i].requested = true,
                    None => self.open(open, Asked::Call(call.clone()), (at, message), false),
                }
            }
            Content::ApprovalResponse { call_id, approved, reason } => {
                let asked = open.get(call_id).into_iter().flatten().copied();
                let asked = asked.into_iter().find(|&i| self.calls[i].requested && self.calls[i].answer.is_none());
                match asked {
                    Some(i) => self.calls[i].answer = Some(Answer { approved: *approved, reason: reason.clone() }),
                    None => self.unmatched.push((at, call_id.clone())),
                }
            }
            Content::ToolResult(result) => {
                if let Some(open) = open.get_mut(&result.call_id)
                    && !open.is_empty()
                {
                    self.calls[open.remove(0)].result = Some((at, part));
                }
            }
            Content::Text(_)
            | Content::Reasoning { .. }
            | Content::Data { .. }
            | Content::Uri { .. }
            | Content::Native { .. } => (),
        }
    }

    fn open(
        &mut self,
        open: &mut HashMap<String, Vec<usize>>,
        call: Asked,
        (message, by): (usize, &ChatMessage),
        called: bool,
    ) {
        open.entry(call.id().to_owned()).or_default().push(self.calls.len());
        let author = by.author.clone();
        let requested = !called;
        self.calls.push(TrackedCall { call, message, author, called, requested, answer: None, result: None });
    }

    /// Calls without a result, in order.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = &TrackedCall> {
        self.calls.iter().filter(|call| call.result.is_none())
    }

    /// Calls that the caller was asked about and has not answered, in order.
    pub(crate) fn awaiting(&self) -> impl Iterator<Item = &ToolCall> {
        self.unsettled().filter(|call| call.requested && call.answer.is_none()).filter_map(|call| match &call.call {
            Asked::Call(call) => Some(call),
            Asked::Invalid { .. } => None,
        })
    }
}

/// Checks the caller's answers in this turn: each must fit an open request, and each request takes one answer.
///
/// # Errors
/// [`ErrorKind::Invalid`] names the first that does not fit, and the calls that do wait.
pub(crate) fn check_answers(session: &Session, log: &CallLog) -> Result<()> {
    let from = session.turn().start.max(session.messages().len() - session.pending().len());
    let Some((_, id)) = log.unmatched.iter().find(|(at, _)| *at >= from) else { return Ok(()) };
    let open: Vec<String> = session.open_approvals().iter().map(|call| format!("`{}`", call.id)).collect();
    let known = if open.is_empty() { "no call waits for an answer".to_owned() } else { open.join(", ") };
    let hint = if open.is_empty() { "" } else { "waiting for one answer each: " };
    Err(Error::new(ErrorKind::Invalid, format!("answer to `{id}`, which fits no open approval request; {hint}{known}")))
}
