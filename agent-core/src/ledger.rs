//! Tokens that were used and not reported.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Usage;

/// Bills that no event reports yet. A branch and an agent tool have their own, so that loops that run at once do not
/// take each other's; what nobody took goes to the enclosing ledger.
#[derive(Default)]
pub(crate) struct Ledger {
    owed: Mutex<Option<Usage>>,
    parent: Option<Arc<Ledger>>,
}

impl Ledger {
    /// A ledger of a part's own, inside this one.
    pub(crate) fn inside(self: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { owed: Mutex::default(), parent: Some(self.clone()) })
    }

    pub(crate) fn owe(&self, usage: Usage) {
        *self.owed().get_or_insert_default() += usage;
    }

    pub(crate) fn take(&self) -> Option<Usage> {
        self.owed().take()
    }

    fn owed(&self) -> MutexGuard<'_, Option<Usage>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if let (Some(parent), Some(owed)) = (&self.parent, self.take()) {
            parent.owe(owed);
        }
    }
}
