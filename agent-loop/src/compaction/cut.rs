//! Where a conversation is cut.

use std::{ops::Range, sync::Arc};

use agent_core::{ChatMessage, ChatRequest, Role};

use super::size;

/// Who says that messages are missing.
const AUTHOR: &str = "compaction";
/// The share of the budget that a summary may take, as a divisor.
const SUMMARY: u64 = 8;

/// A beginning that is left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut {
    /// The messages from the first on, pinned ones included.
    pub(super) covered: Vec<ChatMessage>,
    /// The request that was pinned then.
    request: Range<usize>,
    /// What they came to.
    pub(super) summary: Option<String>,
}

/// A request's messages, and what is to become of them.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    messages: &'a Arc<[ChatMessage]>,
    /// In estimated tokens.
    pub(super) budget: u64,
    overhead: u64,
    sizes: Vec<u64>,
    /// The newest words by the caller.
    request: Range<usize>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(request: &'a ChatRequest, budget: u64) -> Self {
        let messages = &request.messages;
        Self {
            messages,
            budget,
            overhead: size::overhead(request),
            sizes: messages.iter().map(size::of_message).collect(),
            request: newest_words(messages),
        }
    }

    /// Whether a cut is one of these messages.
    pub(super) fn begins_with(&self, cut: &Cut) -> bool {
        cut.request == self.pinned_before(cut.covered.len()) && self.messages.starts_with(&cut.covered)
    }

    /// How many tokens are left with this cut.
    pub(super) fn size(&self, cut: &Cut) -> u64 {
        let end = cut.covered.len();
        let note = self.note(cut).as_ref().map_or(0, size::of_message);
        self.fixed(end) + note + self.sizes[end..].iter().sum::<u64>()
    }

    /// Where to cut so that half of the budget is used, after `from`; none if nothing more can be left out.
    pub(super) fn end(&self, from: usize) -> Option<usize> {
        let (mut fixed, mut rest) = (self.fixed(from), self.sizes[from..].iter().sum::<u64>());
        let (mut last, mut drops) = (None, false);
        for (at, next) in self.messages.iter().enumerate().skip(1).skip(from) {
            let before = at - 1;
            rest -= self.sizes[before];
            if self.is_pinned(before) {
                fixed += self.sizes[before];
            } else {
                drops = true;
            }
            if !drops || next.role == Role::Tool || self.splits_request(at) {
                continue;
            }
            last = Some(at);
            if fixed + self.summary_limit() + rest <= self.budget / 2 {
                break;
            }
        }
        last
    }

    pub(super) fn cut(&self, end: usize, summary: Option<String>) -> Cut {
        Cut { covered: self.messages[..end].to_vec(), request: self.pinned_before(end), summary }
    }

    /// The messages with this cut: what is pinned, a note, the rest.
    pub(super) fn apply(&self, cut: &Cut) -> Arc<[ChatMessage]> {
        let end = cut.covered.len();
        let pinned = (0..end).filter(|at| self.is_pinned(*at)).map(|at| self.messages[at].clone());
        pinned.chain(self.note(cut)).chain(self.messages[end..].iter().cloned()).collect()
    }

    /// The messages before `end` that a cut there leaves out.
    pub(super) fn dropped(&self, end: usize) -> impl DoubleEndedIterator<Item = &ChatMessage> {
        (0..end).filter(|at| !self.is_pinned(*at)).map(|at| &self.messages[at])
    }

    /// How many tokens a summary may have.
    pub(super) fn summary_limit(&self) -> u64 {
        self.budget / SUMMARY
    }

    fn note(&self, cut: &Cut) -> Option<ChatMessage> {
        let missing = match self.dropped(cut.covered.len()).count() {
            0 => return None,
            1 => "1 earlier message is".to_owned(),
            n => format!("{n} earlier messages are"),
        };
        let text = match &cut.summary {
            None => format!("[{missing} left out here to save space.]"),
            Some(summary) => format!("[{missing} left out here to save space. A summary of them:]\n\n{summary}"),
        };
        Some(ChatMessage::user(text).by(AUTHOR))
    }

    /// The tokens of what stays before a cut.
    fn fixed(&self, end: usize) -> u64 {
        self.overhead + (0..end).filter(|at| self.is_pinned(*at)).map(|at| self.sizes[at]).sum::<u64>()
    }

    fn is_pinned(&self, at: usize) -> bool {
        self.messages[at].role == Role::System || self.request.contains(&at)
    }

    fn pinned_before(&self, end: usize) -> Range<usize> {
        if self.request.start < end { self.request.clone() } else { 0..0 }
    }

    fn splits_request(&self, at: usize) -> bool {
        self.request.start < at && at < self.request.end
    }
}

/// The newest run of user messages without an author, which is the caller's; if there is none, the first user message.
fn newest_words(messages: &[ChatMessage]) -> Range<usize> {
    let by_caller = |message: &ChatMessage| message.role == Role::User && message.author.is_none();
    if let Some(last) = messages.iter().rposition(by_caller) {
        let before = messages[..last].iter().rev().take_while(|message| by_caller(message)).count();
        return last - before..last + 1;
    }
    let first = messages.iter().position(|message| message.role == Role::User);
    first.map_or(0..0, |at| at..at + 1)
}
