//! What goes wrong with a trial, and whose fault it is.

use std::{any::Any, time::Duration};

use agent_core::{Error, ErrorKind};

use crate::{SetupError, TrialError};

/// An error of the run, and whose it is. A service's, a store's, and what may pass by itself are the infrastructure's,
/// also as the cause of another's error, such as an evaluator's; anything else is the agent's.
pub(super) fn trial_error(error: &Error) -> TrialError {
    let is_infrastructure =
        |error: &Error| error.is_transient() || matches!(error.kind(), ErrorKind::Provider | ErrorKind::Store);
    let setup = causes(error).any(<dyn std::error::Error>::is::<SetupError>);
    let infrastructure = !setup && causes(error).filter_map(|cause| cause.downcast_ref()).any(is_infrastructure);
    TrialError { message: format!("{error:#}"), infrastructure, setup }
}

/// How long a service asked to wait.
pub(super) fn retry_after(error: &Error) -> Option<Duration> {
    causes(error).filter_map(|cause| cause.downcast_ref::<Error>()).find_map(Error::retry_after)
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

pub(super) fn panicked(panic: &(dyn Any + Send)) -> TrialError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("panicked: {}", text.unwrap_or("with something that is no text"));
    TrialError { message, infrastructure: false, setup: false }
}

pub(super) fn timed_out(limit: Option<Duration>) -> TrialError {
    let message = format!("timed out after {:?}", limit.unwrap_or_default());
    TrialError { message, infrastructure: true, setup: false }
}
