//! For services whose conversations are between a user and the model alone.

use agent_core::{ChatRequest, Result, Role};

use crate::unsupported;

/// What a user says where the service demands a user's words and the caller has none.
pub(crate) const GO_ON: &str = "Continue.";

/// The instructions, and the orders inside the conversation: they have no other place.
pub(crate) fn all(provider: &str, request: &ChatRequest) -> Result<Vec<String>> {
    let inside = request.messages.iter().filter(|message| message.role == Role::System);
    let inside = inside.map(|message| unsupported::text(provider, &message.contents, "in a system message"));
    let mut orders =
        request.instructions.iter().map(|text| Ok(text.to_string())).chain(inside).collect::<Result<Vec<_>>>()?;
    orders.retain(|text| !text.trim().is_empty()); // services refuse blank texts
    Ok(orders)
}
