//! The workspace's one error type.

use std::{error::Error as StdError, fmt, time::Duration};

/// Any error that can cross threads: what tools return and what an [`Error`] keeps as its source.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A result whose error is [`Error`] unless said otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What an [`Error`] is about, for programs that react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Input that cannot be used: an answer to an approval that nobody asked for, text that is not the wanted type.
    Invalid,
    /// A model service failed; the source is the provider's own typed error.
    Provider,
    /// A tool could not be used at all. (A tool's own failure is a result that the model reads, not an error.)
    Tool,
    /// A session store failed.
    Store,
    /// Another writer changed the session first; load it again.
    Conflict,
    /// An evaluator could not judge.
    Evaluator,
    /// An instruction template names a state key that is absent.
    Template,
    /// A feature that this service or format does not have.
    Unsupported,
    /// An agent, client or script broke the rules of its trait.
    Contract,
}

/// An opaque error: a kind for programs, a context for people, and a source for both.
///
/// `{}` prints the context alone, `{:#}` the causes behind it, too; walk [`source`](StdError::source) for them as values.
/// `{:?}` is as `{:#}`, for it is what a `main` that returns the error shows its user; `{:#?}` has all fields.
///
/// ```
/// use agent_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Store, "append to session `a`").with_source("the disk is full");
/// assert_eq!(error.to_string(), "append to session `a`");
/// assert_eq!(format!("{error:#}"), "append to session `a`: the disk is full");
/// assert_eq!(format!("{error:?}"), "append to session `a`: the disk is full");
/// assert!(format!("{error:#?}").contains("kind: Store"));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    context: String,
    source: Option<BoxError>,
    transient: bool,
    retry_after: Option<Duration>,
}

impl Error {
    /// An error of this kind; `context` says what was attempted on what, as a lower-case fragment.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        let context = context.into();
        Self(Box::new(Inner { kind, context, source: None, transient: false, retry_after: None }))
    }

    /// What a [`SessionStore`](crate::SessionStore) tells a writer that comes too late.
    pub fn conflict(id: &str, expected: u64, found: u64) -> Self {
        let context = format!("append to session `{id}` at version {expected}: it is at {found}; load it again");
        Self::new(ErrorKind::Conflict, context)
    }

    /// Keeps the cause.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks the error as one that may go away by itself: the same call may succeed later.
    pub fn transient(mut self) -> Self {
        self.0.transient = true;
        self
    }

    /// Keeps how long a service asked to wait before the next try.
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// How long a service asked to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write!(f, "{self:#}");
        }
        let Inner { kind, context, source, transient, retry_after } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("kind", kind).field("context", context);
        if let Some(source) = source {
            out.field("source", source);
        }
        if *transient {
            out.field("transient", transient);
        }
        if let Some(delay) = retry_after {
            out.field("retry_after", delay);
        }
        out.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.context)?;
        if f.alternate() { causes(self).try_for_each(|cause| write!(f, ": {cause}")) } else { Ok(()) }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// An error and its causes on one line, `outer: inner`, for texts that a model or a person reads.
pub(crate) fn describe(error: &(dyn StdError + 'static)) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}
