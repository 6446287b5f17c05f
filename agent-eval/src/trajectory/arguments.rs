//! One call against one expected call.

use std::{collections::BTreeMap, fmt};

use agent_core::{Error, ErrorKind, Result, ToolCall, json_equal};
use regex::Regex;
use serde_json::{Map, Value};

use crate::{ArgumentMode, ExpectedCall, FieldMatcher, json};

/// An expected call, compiled.
#[derive(Debug, Clone)]
pub(super) struct CallPattern {
    name: String,
    arguments: Map<String, Value>,
    mode: ArgumentMode,
    fields: BTreeMap<String, Field>,
}

#[derive(Debug, Clone)]
enum Field {
    Any,
    Near { value: f64, tolerance: f64 },
    Regex(Regex),
    OneOf(Vec<Value>),
}

impl CallPattern {
    pub(super) fn new(call: &ExpectedCall, mode: &ArgumentMode) -> Result<Self> {
        let mode = call.mode.as_ref().unwrap_or(mode).clone();
        let invalid =
            |what: String| Error::new(ErrorKind::Invalid, format!("expect a call of `{}`: {what}", call.name));
        if call.name.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "expect a call without a name"));
        }
        if let ArgumentMode::Keys(keys) = &mode {
            if keys.is_empty() {
                return Err(invalid("compare no keys; list JSON pointers, or use the mode `ignore`".to_owned()));
            }
            if let Some(key) = keys.iter().find(|key| !json::is_pointer(key)) {
                return Err(invalid(no_pointer(key)));
            }
        }
        let compile = |(pointer, matcher): (&String, &FieldMatcher)| {
            if !json::is_pointer(pointer) {
                return Err(invalid(no_pointer(pointer)));
            }
            let field = Field::new(matcher).map_err(|what| invalid(format!("match `{pointer}`: {what}")))?;
            Ok((pointer.clone(), field))
        };
        let fields = call.fields.iter().map(compile).collect::<Result<_>>()?;
        Ok(Self { name: call.name.clone(), arguments: call.arguments.clone(), mode, fields })
    }

    pub(super) fn matches(&self, call: &ToolCall) -> bool {
        let accepts = |(pointer, field): (&String, &Field)| {
            call.arguments.pointer(pointer).is_some_and(|found| field.accepts(found))
        };
        if self.name != call.name || !self.fields.iter().all(accepts) {
            return false;
        }
        // What a field's matcher accepted is as expected, so that the mode looks at the rest only.
        let mut expected = Value::Object(self.arguments.clone());
        for pointer in self.fields.keys() {
            if let Some(found) = call.arguments.pointer(pointer) {
                put(&mut expected, pointer, found.clone());
            }
        }
        match &self.mode {
            ArgumentMode::Exact => json_equal(&expected, &call.arguments),
            ArgumentMode::Subset => json::contains(&call.arguments, &expected),
            ArgumentMode::Ignore => true,
            ArgumentMode::Keys(keys) => {
                keys.iter().all(|key| match (expected.pointer(key), call.arguments.pointer(key)) {
                    (Some(expected), Some(found)) => json_equal(expected, found),
                    (None, None) => true,
                    (Some(_), None) | (None, Some(_)) => false,
                })
            }
        }
    }
}

impl fmt::Display for CallPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        match &self.mode {
            ArgumentMode::Ignore => write!(f, " (any arguments)")?,
            ArgumentMode::Exact => write!(f, " {}", Value::Object(self.arguments.clone()))?,
            ArgumentMode::Subset => write!(f, " {} (or more)", Value::Object(self.arguments.clone()))?,
            ArgumentMode::Keys(keys) => {
                write!(f, " {} (at {})", Value::Object(self.arguments.clone()), keys.join(", "))?;
            }
        }
        for (pointer, field) in &self.fields {
            write!(f, ", {pointer} ")?;
            match field {
                Field::Any => write!(f, "is there")?,
                Field::Near { value, tolerance } => write!(f, "is {value} ± {tolerance}")?,
                Field::Regex(regex) => write!(f, "matches /{regex}/")?,
                Field::OneOf(values) => write!(f, "is one of {}", Value::Array(values.clone()))?,
            }
        }
        Ok(())
    }
}

impl Field {
    fn new(matcher: &FieldMatcher) -> Result<Self, String> {
        match matcher {
            FieldMatcher::Any => Ok(Self::Any),
            FieldMatcher::Near { value, tolerance } if *tolerance >= 0.0 => {
                Ok(Self::Near { value: *value, tolerance: *tolerance })
            }
            FieldMatcher::Near { tolerance, .. } => Err(format!("the tolerance {tolerance} is negative")),
            FieldMatcher::Regex(regex) => Regex::new(regex).map(Self::Regex).map_err(|error| error.to_string()),
            FieldMatcher::OneOf(values) if values.is_empty() => Err("`one_of` has no values".to_owned()),
            FieldMatcher::OneOf(values) => Ok(Self::OneOf(values.clone())),
        }
    }

    fn accepts(&self, found: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Near { value, tolerance } => found.as_f64().is_some_and(|found| (found - value).abs() <= *tolerance),
            Self::Regex(regex) => found.as_str().is_some_and(|found| regex.is_match(found)),
            Self::OneOf(values) => values.iter().any(|value| json_equal(value, found)),
        }
    }
}

fn no_pointer(text: &str) -> String {
    format!("`{text}` is no JSON pointer (RFC 6901); write `/{text}`")
}

/// Puts a value at a pointer; objects on the way are made.
fn put(target: &mut Value, pointer: &str, value: Value) {
    let mut place = target;
    for key in json::keys(pointer) {
        place = match place {
            Value::Array(list) => match key.parse::<usize>().ok().and_then(|at| list.get_mut(at)) {
                Some(place) => place,
                None => return,
            },
            Value::Object(map) => map.entry(key).or_insert_with(|| Value::Object(Map::new())),
            _ => return,
        };
    }
    *place = value;
}
