//! Standing orders, filled from the state.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{Error, ErrorKind, Result, Session};

/// An agent's standing orders: none, a template, or a function of the session.
///
/// In a template `{key}` becomes the state's value (strings as they are, others as JSON), and `{key?}` may be absent.
/// A key is made of letters, digits, `_`, `:`, `.` and `-`; braces around anything else stay as they are. Values are
/// not expanded again.
#[derive(Clone, Default)]
pub enum Instructions {
    /// No orders.
    #[default]
    None,
    /// A text with `{key}`s.
    Template(String),
    /// A text made for each model call, used as it is.
    Dynamic(Arc<dyn Fn(&Session) -> String + Send + Sync>),
}

impl Instructions {
    /// Orders made from the session before each model call, used as they are.
    pub fn dynamic(f: impl Fn(&Session) -> String + Send + Sync + 'static) -> Self {
        Self::Dynamic(Arc::new(f))
    }

    /// The orders for this session; none if they are empty.
    pub(super) fn render(&self, session: &Session) -> Result<Option<Arc<str>>> {
        let text = match self {
            Self::None => return Ok(None),
            Self::Template(template) => fill(template, session)?,
            Self::Dynamic(f) => f(session),
        };
        Ok((!text.is_empty()).then(|| text.into()))
    }
}

impl From<&str> for Instructions {
    fn from(template: &str) -> Self {
        Self::Template(template.to_owned())
    }
}

impl From<String> for Instructions {
    fn from(template: String) -> Self {
        Self::Template(template)
    }
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Template(template) => f.debug_tuple("Template").field(template).finish(),
            Self::Dynamic(_) => f.write_str("Dynamic(..)"),
        }
    }
}

fn fill(template: &str, session: &Session) -> Result<String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some((name, length)) = placeholder(rest) {
            push_value(&mut filled, name, session)?;
            rest = &rest[length..];
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The name in `{name}` or `{name?}` at the beginning of a text, and the length of the whole in bytes.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let inner = &text[1..text.find('}')?];
    let key = inner.strip_suffix('?').unwrap_or(inner);
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_:.-".contains(c));
    is_name.then_some((inner, inner.len() + 2))
}

fn push_value(filled: &mut String, name: &str, session: &Session) -> Result<()> {
    let (key, optional) = name.strip_suffix('?').map_or((name, false), |key| (key, true));
    match session.state().get(key) {
        Some(Value::String(text)) => filled.push_str(text),
        Some(value) => filled.push_str(&value.to_string()),
        None if optional => (),
        None => {
            let context = format!(
                "fill the instructions: the state has no key `{key}`; set it, or write `{{{key}?}}` if it may be absent"
            );
            return Err(Error::new(ErrorKind::Template, context));
        }
    }
    Ok(())
}
