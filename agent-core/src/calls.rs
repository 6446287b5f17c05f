//! Which calls of a history are open: asked for, asked about, answered, or done.

use std::collections::HashMap;

use crate::{ChatMessage, Content, Error, ErrorKind, Result, Session, ToolCall};

/// One call of a history. Services reuse ids, so an id names the first call that still fits: of those that are open,
/// one by the same author goes first, because parallel branches share a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackedCall<'m> {
    pub(crate) call: Asked<'m>,
    /// The message that asks for it.
    pub(crate) message: usize,
    /// Who wrote that message.
    pub(crate) author: Option<&'m str>,
    /// Whether the history holds the call itself, not only the question about it.
    pub(crate) called: bool,
    /// Whether the caller was asked about it.
    pub(crate) requested: bool,
    /// What the caller answered.
    pub(crate) answer: Option<Answer<'m>>,
    /// The message that holds its result, and the result's place in it.
    pub(crate) result: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'m> {
    Call(&'m ToolCall),
    Invalid { id: &'m str, name: &'m str, why: &'m str },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'m> {
    pub(crate) approved: bool,
    pub(crate) reason: Option<&'m str>,
}

impl TrackedCall<'_> {
    /// Whether the author of a message can be the one of the call; a message by nobody can be anybody's.
    fn may_be_by(&self, message: &ChatMessage) -> bool {
        self.author.is_none() || message.author.is_none() || self.author == message.author.as_deref()
    }

    fn waits(&self) -> bool {
        self.requested && self.answer.is_none()
    }
}

impl<'m> Asked<'m> {
    pub(crate) fn id(self) -> &'m str {
        match self {
            Self::Call(call) => &call.id,
            Self::Invalid { id, .. } => id,
        }
    }
}

/// The calls of each id that have no result yet, oldest first.
type Open<'m> = HashMap<&'m str, Vec<usize>>;

/// The calls of a history in order, each with what became of it. Linear in the history, and copies none of it: a request
/// to a model reads it each time.
#[derive(Debug, Default)]
pub(crate) struct CallLog<'m> {
    pub(crate) calls: Vec<TrackedCall<'m>>,
    /// Those that wait for the caller's answer, in the order in which they were asked about.
    waiting: Vec<usize>,
    /// Answers that fit no open request: the message, and the id that they name.
    unmatched: Vec<(usize, &'m str)>,
}

impl<'m> CallLog<'m> {
    pub(crate) fn of(messages: &'m [ChatMessage]) -> Self {
        let mut log = Self::default();
        let mut open: Open<'m> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            for (part, content) in message.contents.iter().enumerate() {
                log.read(&mut open, (at, part), message, content);
            }
        }
        log
    }

    fn read(
        &mut self,
        open: &mut Open<'m>,
        (at, part): (usize, usize),
        message: &'m ChatMessage,
        content: &'m Content,
    ) {
        match content {
            Content::ToolCall(call) => {
                self.open(open, Asked::Call(call), (at, message), true);
            }
            Content::InvalidToolCall { id, name, why, .. } => {
                self.open(open, Asked::Invalid { id, name, why }, (at, message), true);
            }
            Content::ApprovalRequest(call) => {
                let asked = match self.asked_about(open, call, message) {
                    Some(known) => known,
                    None => self.open(open, Asked::Call(call), (at, message), false),
                };
                let tracked = &mut self.calls[asked];
                // What the caller was shown is what an approval lets run.
                (tracked.call, tracked.requested) = (Asked::Call(call), true);
                self.waiting.push(asked);
            }
            Content::ApprovalResponse { call_id, approved, reason } => {
                match self.waiting.iter().position(|&i| self.calls[i].call.id() == call_id) {
                    Some(first) => {
                        let answer = Answer { approved: *approved, reason: reason.as_deref() };
                        self.calls[self.waiting.remove(first)].answer = Some(answer);
                    }
                    None => self.unmatched.push((at, call_id)),
                }
            }
            Content::ToolResult(result) => {
                if let Some(open) = open.get_mut(&*result.call_id)
                    && let Some(place) = self.answered(open, message)
                {
                    let call = open.remove(place);
                    self.calls[call].result = Some((at, part));
                    self.waiting.retain(|waiting| *waiting != call);
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
        open: &mut Open<'m>,
        call: Asked<'m>,
        (message, by): (usize, &'m ChatMessage),
        called: bool,
    ) -> usize {
        let at = self.calls.len();
        open.entry(call.id()).or_default().push(at);
        let author = by.author.as_deref();
        self.calls.push(TrackedCall { call, message, author, called, requested: false, answer: None, result: None });
        at
    }

    /// The open call that an approval request is about: an equal one, else the first that it can be.
    fn asked_about(&self, open: &Open<'_>, call: &ToolCall, by: &ChatMessage) -> Option<usize> {
        let mut first = None;
        for &at in open.get(&*call.id)? {
            let tracked = &self.calls[at];
            if let Asked::Call(known) = tracked.call
                && !tracked.requested
                && tracked.may_be_by(by)
            {
                if known == call {
                    return Some(at);
                }
                first = first.or(Some(at));
            }
        }
        first
    }

    /// The place of the call that a result answers. One that waits for the caller has no result yet, if another fits.
    fn answered(&self, open: &[usize], by: &ChatMessage) -> Option<usize> {
        let place = |fits: &dyn Fn(&TrackedCall<'_>) -> bool| open.iter().position(|&at| fits(&self.calls[at]));
        place(&|call| call.may_be_by(by) && !call.waits())
            .or_else(|| place(&|call| call.may_be_by(by)))
            .or((!open.is_empty()).then_some(0))
    }

    /// Calls without a result, in order.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = TrackedCall<'m>> {
        self.calls.iter().copied().filter(|call| call.result.is_none())
    }

    /// Calls that the caller was asked about and has not answered, in the order of the questions.
    pub(crate) fn awaiting(&self) -> impl Iterator<Item = &'m ToolCall> {
        self.waiting.iter().filter_map(|&at| match self.calls[at].call {
            Asked::Call(call) => Some(call),
            Asked::Invalid { .. } => None,
        })
    }
}

/// Checks the caller's answers in this turn: each must fit an open request, and each request takes one answer. Answers
/// from before the caller's last words are not checked: new words make a session usable after a refused answer.
///
/// # Errors
/// [`ErrorKind::Invalid`] names the first that does not fit, and the calls that do wait.
pub(crate) fn check_answers(session: &Session, log: &CallLog<'_>) -> Result<()> {
    let pending = session.pending();
    let words = pending.iter().rposition(|message| !message.is_only_answers()).unwrap_or_default();
    let from = session.turn().start.max(session.messages().len() - pending.len() + words);
    let Some((_, id)) = log.unmatched.iter().find(|(at, _)| *at >= from) else { return Ok(()) };
    let open: Vec<String> = log.awaiting().map(|call| format!("`{}`", call.id)).collect();
    let known = if open.is_empty() { "no call waits for an answer".to_owned() } else { open.join(", ") };
    let hint = if open.is_empty() { "" } else { "waiting for one answer each: " };
    Err(Error::new(ErrorKind::Invalid, format!("answer to `{id}`, which fits no open approval request; {hint}{known}")))
}
