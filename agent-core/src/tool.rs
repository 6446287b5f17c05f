//! Tools: what a model may call.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{BoxError, Content, Result, RunContext, Session, StateChange, ToolCall, Usage, session::to_json};

/// What a model is told of a tool, and what an agent has to know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name to call it by. Most services take letters, digits, `_` and `-`, 64 at most.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The arguments' JSON Schema: an object.
    pub parameters: Value,
    /// Whether the caller is asked before each run.
    pub needs_approval: bool,
}

/// Something that a model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. An error becomes an error result that the model reads, and ends nothing. The future is dropped
    /// when the run is interrupted.
    async fn call(&self, cx: ToolContext) -> Result<ToolOutput, BoxError>;
}

/// What a tool's run has to do with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The call.
    pub call: ToolCall,
    /// The session as it was when the calls of this answer began.
    pub session: Session,
    /// The run: its limits, its cancellation.
    pub run: RunContext,
}

/// What a tool's run came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub contents: Vec<Content>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Changes of the session's state, committed with the result.
    pub state: Vec<StateChange>,
    /// Tokens that the tool used, and has already [spent](RunContext::spend).
    pub usage: Option<Usage>,
    /// Ask the enclosing loop to end: the run ends [`Escalated`](crate::StopReason::Escalated).
    pub escalate: bool,
    /// Do not ask the model again.
    pub end_turn: bool,
}

impl ToolOutput {
    /// A result that is a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { contents: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// An error result: the model reads what went wrong.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A result that is a value, as JSON text.
    ///
    /// # Panics
    /// As [`Session::with_state`].
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        Self::from(to_json(value))
    }

    /// Sets a state key with the result.
    ///
    /// # Panics
    /// As [`Session::with_state`].
    pub fn set(mut self, key: impl Into<Arc<str>>, value: impl Serialize) -> Self {
        self.state.push(StateChange::Set { key: key.into(), value: to_json(value) });
        self
    }

    /// Appends to a state key's list with the result.
    ///
    /// # Panics
    /// As [`Session::with_state`].
    pub fn append(mut self, key: impl Into<Arc<str>>, value: impl Serialize) -> Self {
        self.state.push(StateChange::Append { key: key.into(), value: to_json(value) });
        self
    }

    /// Asks the enclosing loop to end.
    pub fn escalate(mut self) -> Self {
        self.escalate = true;
        self
    }

    /// Ends the model's turn: it is not asked again.
    pub fn end_turn(mut self) -> Self {
        self.end_turn = true;
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// A string is its text; anything else is JSON text.
impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::text(text),
            other => Self::text(other.to_string()),
        }
    }
}

macro_rules! forward_tool {
    ($pointer:ty) => {
        #[async_trait]
        impl<T: Tool + ?Sized> Tool for $pointer {
            fn spec(&self) -> &ToolSpec {
                (**self).spec()
            }

            async fn call(&self, cx: ToolContext) -> Result<ToolOutput, BoxError> {
                (**self).call(cx).await
            }
        }
    };
}

forward_tool!(Box<T>);
forward_tool!(Arc<T>);

/// A tool from a function, see [`tool_fn`].
pub struct ToolFn<Args, F> {
    spec: ToolSpec,
    timeout: Option<Duration>,
    f: F,
    args: PhantomData<fn(Args)>,
}

/// A tool from an async function of its arguments and a [`ToolContext`].
///
/// Annotate the arguments, and clone what the future needs. The schema is the one of `Args`; a
/// [`Value`] takes anything. Arguments that are `null` count as `{}`. The function returns a text, a [`Value`], or a
/// [`ToolOutput`] such as [`ToolOutput::json`] of anything else.
///
/// ```
/// use agent_core::{ToolContext, tool_fn};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = tool_fn("add", "Adds two numbers.", |args: Add, _: ToolContext| async move {
///     args.a.checked_add(args.b).map(|sum| sum.to_string()).ok_or_else(|| "the sum is too large".into())
/// });
/// # use agent_core::Tool;
/// assert_eq!(add.spec().parameters["required"][1], "b");
/// ```
pub fn tool_fn<Args, F, Fut, Out>(name: impl Into<String>, description: impl Into<String>, f: F) -> ToolFn<Args, F>
where
    Args: JsonSchema + DeserializeOwned,
    F: Fn(Args, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Out, BoxError>> + Send,
    Out: Into<ToolOutput>,
{
    let parameters = parameters_of::<Args>();
    let spec = ToolSpec { name: name.into(), description: description.into(), parameters, needs_approval: false };
    ToolFn { spec, timeout: None, f, args: PhantomData }
}

impl<Args, F> ToolFn<Args, F> {
    /// Ask the caller before each run.
    pub fn needs_approval(mut self) -> Self {
        self.spec.needs_approval = true;
        self
    }

    /// How long one call may take; then it is dropped, and its result is an error.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

impl<Args, F> fmt::Debug for ToolFn<Args, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolFn").field("spec", &self.spec).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[async_trait]
impl<Args, F, Fut, Out> Tool for ToolFn<Args, F>
where
    Args: JsonSchema + DeserializeOwned,
    F: Fn(Args, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Out, BoxError>> + Send,
    Out: Into<ToolOutput>,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: ToolContext) -> Result<ToolOutput, BoxError> {
        let args = read_arguments(&cx.call).map_err(|error| format!("invalid arguments: {error}"))?;
        let answer = (self.f)(args, cx);
        let answer = match self.timeout {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => return Err(format!("timed out after {limit:?}").into()),
            },
        };
        answer.map(Into::into)
    }
}

/// The arguments; an error tells which of them is wrong.
fn read_arguments<Args: DeserializeOwned>(
    call: &ToolCall,
) -> Result<Args, serde_path_to_error::Error<serde_json::Error>> {
    match &call.arguments {
        Value::Null => serde_path_to_error::deserialize(json!({})),
        arguments => serde_path_to_error::deserialize(arguments),
    }
}

/// The schema of a tool's arguments; services want an object, and none of the words about the schema itself.
fn parameters_of<Args: JsonSchema>() -> Value {
    let mut schema = match schemars::schema_for!(Args).to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(), // `true`: anything
    };
    schema.remove("$schema");
    schema.remove("title");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// A tool named `exit_loop`: the model says that the work is done. Its turn ends without another model call, and the
/// run ends [`Escalated`](crate::StopReason::Escalated).
pub fn exit_loop() -> impl Tool {
    let description = "Ends the loop. Call it once nothing is left to do; say nothing more.";
    tool_fn("exit_loop", description, |_: Value, _: ToolContext| async {
        Ok(ToolOutput::text("the loop ends").escalate().end_turn())
    })
}
