//! Requests as generateContent takes them.

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Format, Reasoning, ReasoningEffort, Result, Role, ToolChoice, ToolSpec,
};
use serde_json::{Map, Value, json};

use super::contents;
use crate::{dialect::Dialect, extra, unsupported::unsupported};

/// The service's name, in errors and native items.
pub(super) const PROVIDER: &str = "gemini";

/// What structured outputs know of JSON Schema.
///
/// Sources: <https://ai.google.dev/api/generate-content#FIELDS.response_json_schema>,
/// <https://ai.google.dev/gemini-api/docs/structured-output>.
const DIALECT: Dialect = Dialect {
    provider: PROVIDER,
    restrictions: &["minItems", "maxItems", "minimum", "maximum"],
    formats: &["date-time", "date", "time"],
    closed: false,
    all_of: false,
    tuples: true,
    any_constant: false,
    recursive: true,
};

/// The whole request. The model is in the path.
pub(super) fn body(request: &ChatRequest, model: &str) -> Result<Value> {
    let mut body = Map::new();
    let system = system(request);
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({ "parts": system }));
    }
    body.insert("contents".into(), contents::of(&request.messages, model)?.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(tool).collect::<Vec<_>>();
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
    }
    options(&request.options, &mut body)?;
    Ok(Value::Object(body))
}

fn options(options: &ChatOptions, body: &mut Map<String, Value>) -> Result<()> {
    let ChatOptions {
        model: _,
        temperature,
        top_p,
        max_output_tokens,
        seed,
        stop,
        reasoning,
        tool_choice,
        format,
        cache_prompt: _, // the service caches by itself
        extra,
    } = options;
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.into(), value);
        }
    };
    if seed.is_some_and(|seed| i32::try_from(seed).is_err()) {
        return Err(unsupported(PROVIDER, "the option `seed` with more than 31 bits"));
    }
    put("temperature", temperature.map(Into::into));
    put("topP", top_p.map(Into::into));
    put("maxOutputTokens", max_output_tokens.map(Into::into));
    put("seed", seed.map(Into::into));
    put("stopSequences", (!stop.is_empty()).then(|| stop.clone().into()));
    put("thinkingConfig", thinking(reasoning)?);
    if let Format::JsonSchema { name: _, schema } = format {
        put("responseMimeType", Some("application/json".into()));
        put("responseJsonSchema", Some(DIALECT.schema(schema)?));
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    if let Some(choice) = choice(tool_choice) {
        body.insert("toolConfig".into(), json!({ "functionCallingConfig": choice }));
    }
    extra::merge(body, extra);
    Ok(())
}

/// How much to think: a level for Gemini 3 and later, a budget before. Who asks for thoughts gets to read them.
fn thinking(reasoning: &Reasoning) -> Result<Option<Value>> {
    let level = |level: &str| Ok(Some(json!({ "thinkingLevel": level, "includeThoughts": true })));
    match (reasoning.effort, reasoning.budget) {
        (None, None) => Ok(None),
        (None, Some(0)) | (Some(ReasoningEffort::None), None) => Ok(Some(json!({ "thinkingBudget": 0 }))),
        (None, Some(budget)) => Ok(Some(json!({ "thinkingBudget": budget, "includeThoughts": true }))),
        (Some(ReasoningEffort::Minimal), None) => level("MINIMAL"),
        (Some(ReasoningEffort::Low), None) => level("LOW"),
        (Some(ReasoningEffort::Medium), None) => level("MEDIUM"),
        (Some(ReasoningEffort::High), None) => level("HIGH"),
        (Some(_), Some(_)) => {
            Err(unsupported(PROVIDER, "both `reasoning.effort` and `reasoning.budget`; set one of them"))
        }
    }
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required => Some(json!({ "mode": "ANY" })),
        ToolChoice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    }
}

fn system(request: &ChatRequest) -> Vec<Value> {
    let orders = request.messages.iter().filter(|message| message.role == Role::System).map(ChatMessage::text);
    let all = request.instructions.iter().map(|text| text.to_string()).chain(orders);
    all.filter(|text| !text.is_empty()).map(|text| json!({ "text": text })).collect()
}

/// Parameters are sent as they are, in the field that takes JSON Schema and not only OpenAPI's part of it; agents check
/// the arguments.
fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({ "name": name, "description": description, "parametersJsonSchema": parameters })
}
