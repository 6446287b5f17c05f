//! What stands between a body and whoever pulls its updates.

use std::task::Waker;

use crate::Update;

/// The one update between a body and whoever pulls.
#[derive(Default)]
pub(crate) struct Slot {
    update: Option<Update>,
    /// How many updates were put here.
    placed: u64,
    /// How many of them were taken with the next one asked for.
    released: u64,
    /// Sends that wait, but those inside the puller's own poll: its next poll reaches them.
    senders: Vec<Waker>,
    /// Whoever pulls, while it waits.
    puller: Option<Waker>,
    /// The address of its waker while it polls the body, else 0.
    polling: usize,
    closed: bool,
}

impl Slot {
    /// Takes the free place; the ticket tells later whether the update [is done with](Self::is_done_with).
    #[inline]
    pub(crate) fn place(&mut self, update: Update) -> u64 {
        self.update = Some(update);
        self.placed += 1;
        if let Some(puller) = self.puller.take() {
            puller.wake(); // sent from outside the body's own poll
        }
        self.placed
    }

    pub(crate) fn is_free(&self) -> bool {
        self.update.is_none() && self.released == self.placed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the update of this ticket was taken, and the next one asked for.
    pub(crate) fn is_done_with(&self, ticket: u64) -> bool {
        self.released >= ticket
    }

    /// The sender is woken once there is something new to know.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if self.polling != address(waker) && !self.senders.iter().any(|known| known.will_wake(waker)) {
            self.senders.push(waker.clone());
        }
    }

    /// The next update is asked for: the last one, if taken, is done with.
    pub(crate) fn pull(&mut self, waker: &Waker) {
        self.puller = None;
        self.polling = address(waker);
        if self.update.is_none() && self.released < self.placed {
            self.released = self.placed;
            self.wake_senders();
        }
    }

    /// What the body was polled for, if it sent anything.
    pub(crate) fn take(&mut self) -> Option<Update> {
        self.polling = 0;
        self.update.take()
    }

    /// Nothing was sent yet: whoever pulls is woken by the next update.
    pub(crate) fn await_update(&mut self, waker: &Waker) {
        self.puller = Some(waker.clone());
    }

    /// Nobody pulls any more: a send elsewhere must not wait for ever.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.wake_senders();
    }

    #[inline]
    fn wake_senders(&mut self) {
        if !self.senders.is_empty() {
            self.senders.drain(..).for_each(Waker::wake);
        }
    }
}

/// Where the waker itself is: a nested executor has wakers of its own, elsewhere.
fn address(waker: &Waker) -> usize {
    std::ptr::from_ref(waker).addr()
}
