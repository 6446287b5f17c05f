//! What was said, as the JSON that the conventions describe
//! (<https://github.com/open-telemetry/semantic-conventions-genai>, `gen-ai-input-messages.json` and its siblings).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{ChatMessage, ChatResponse, Content, Role, StopReason, ToolSpec};

pub(super) fn instructions(text: &str) -> String {
    json!([{ "type": "text", "content": text }]).to_string()
}

pub(super) fn tools(specs: &[ToolSpec]) -> String {
    let definition = |spec: &ToolSpec| {
        json!({
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        })
    };
    specs.iter().map(definition).collect::<Value>().to_string()
}

pub(super) fn messages(messages: &[ChatMessage]) -> String {
    messages.iter().map(message).collect::<Value>().to_string()
}

pub(super) fn answer(answer: &ChatResponse) -> String {
    let mut output = message(&answer.message);
    output["finish_reason"] = finish_reason(answer).into();
    json!([output]).to_string()
}

/// What a tool answered: a text as it is, anything else as a list of parts.
pub(super) fn result(contents: &[Content]) -> String {
    match response(contents) {
        Value::String(text) => text,
        parts => parts.to_string(),
    }
}

/// Why the model stopped, in the conventions' words.
pub(super) fn finish_reason(answer: &ChatResponse) -> &'static str {
    match answer.stop {
        StopReason::Length => "length",
        StopReason::Filtered => "content_filter",
        StopReason::Completed if answer.message.has_calls() => "tool_call",
        StopReason::Completed
        | StopReason::Escalated
        | StopReason::AwaitingApproval
        | StopReason::TurnLimit
        | StopReason::IterationLimit
        | StopReason::BudgetExhausted
        | StopReason::Halted
        | StopReason::Cancelled => "stop",
    }
}

fn message(message: &ChatMessage) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut json = json!({ "role": role, "parts": message.contents.iter().map(part).collect::<Value>() });
    if let Some(author) = &message.author {
        json["name"] = (**author).into();
    }
    json
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({ "type": "text", "content": text }),
        Content::Reasoning { text, .. } => json!({ "type": "reasoning", "content": text }),
        Content::Data { mime_type, data } => json!({
            "type": "blob",
            "modality": modality(mime_type),
            "mime_type": mime_type,
            "content": STANDARD.encode(data),
        }),
        Content::Uri { mime_type, uri } => json!({
            "type": "uri",
            "modality": modality(mime_type.as_deref().unwrap_or_default()),
            "mime_type": mime_type,
            "uri": uri,
        }),
        Content::ToolCall(call) => {
            json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments })
        }
        Content::InvalidToolCall { id, name, raw, .. } => {
            json!({ "type": "tool_call", "id": id, "name": name, "arguments": raw })
        }
        Content::ToolResult(result) => {
            json!({ "type": "tool_call_response", "id": result.call_id, "response": response(&result.contents) })
        }
        Content::Native { provider, value, .. } => json!({ "type": provider, "content": value }),
        Content::ApprovalRequest(call) => {
            json!({ "type": "approval_request", "id": call.id, "name": call.name, "arguments": call.arguments })
        }
        Content::ApprovalResponse { call_id, approved, reason } => {
            json!({ "type": "approval_response", "id": call_id, "approved": approved, "reason": reason })
        }
    }
}

fn response(contents: &[Content]) -> Value {
    let texts: Option<String> =
        contents.iter().map(|c| if let Content::Text(text) = c { Some(text.as_str()) } else { None }).collect();
    texts.map_or_else(|| contents.iter().map(part).collect(), Value::String)
}

fn modality(mime_type: &str) -> &str {
    match mime_type.split('/').next() {
        Some(kind @ ("image" | "audio" | "video")) => kind,
        Some(_) | None => "document",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolCall, ToolResult, Usage};

    #[test]
    fn a_conversation_is_written_as_the_conventions_say() {
        let call = ToolCall { id: "c1".to_owned(), name: "look".to_owned(), arguments: json!({ "at": "sky" }) };
        let picture = Content::Data { mime_type: "image/png".to_owned(), data: vec![1, 2, 3] };
        let uri = Content::Uri { mime_type: None, uri: "https://example.com/a".to_owned() };
        let conversation = [
            ChatMessage::new(Role::User, [Content::Text("what is this?".to_owned()), picture.clone(), uri]),
            ChatMessage::new(
                Role::Assistant,
                [
                    Content::Reasoning { text: "hm".to_owned(), signature: Some("proof".to_owned()) },
                    Content::ToolCall(call),
                    Content::InvalidToolCall {
                        id: "c2".to_owned(),
                        name: "look".to_owned(),
                        raw: "{\"at\":".to_owned(),
                        why: "cut".to_owned(),
                    },
                ],
            )
            .by("watcher"),
            ChatMessage::new(Role::Tool, [result_of("c1", vec![Content::Text("blue".to_owned())])]),
            ChatMessage::new(Role::Tool, [result_of("c2", vec![picture])]),
        ];
        let lines: Vec<String> = conversation.iter().map(|m| message(m).to_string()).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"parts":[{"content":"what is this?","type":"text"},{"content":"AQID","mime_type":"image/png","modality":"image","type":"blob"},{"mime_type":null,"modality":"document","type":"uri","uri":"https://example.com/a"}],"role":"user"}
        {"name":"watcher","parts":[{"content":"hm","type":"reasoning"},{"arguments":{"at":"sky"},"id":"c1","name":"look","type":"tool_call"},{"arguments":"{\"at\":","id":"c2","name":"look","type":"tool_call"}],"role":"assistant"}
        {"parts":[{"id":"c1","response":"blue","type":"tool_call_response"}],"role":"tool"}
        {"parts":[{"id":"c2","response":[{"content":"AQID","mime_type":"image/png","modality":"image","type":"blob"}],"type":"tool_call_response"}],"role":"tool"}
        "#);
    }

    #[test]
    fn an_answer_says_why_it_ended() {
        let reply = |content, stop| ChatResponse {
            message: ChatMessage::new(Role::Assistant, [content]),
            usage: Usage::default(),
            stop,
            model: String::new(),
        };
        let call = ToolCall { id: "c1".to_owned(), name: "look".to_owned(), arguments: json!({}) };
        let answers = [
            reply(Content::Text("blue".to_owned()), StopReason::Completed),
            reply(Content::ToolCall(call), StopReason::Completed),
            reply(Content::Text("bl".to_owned()), StopReason::Length),
            reply(Content::Text(String::new()), StopReason::Filtered),
        ];
        insta::assert_snapshot!(answers.iter().map(answer).collect::<Vec<_>>().join("\n"), @r#"
        [{"finish_reason":"stop","parts":[{"content":"blue","type":"text"}],"role":"assistant"}]
        [{"finish_reason":"tool_call","parts":[{"arguments":{},"id":"c1","name":"look","type":"tool_call"}],"role":"assistant"}]
        [{"finish_reason":"length","parts":[{"content":"bl","type":"text"}],"role":"assistant"}]
        [{"finish_reason":"content_filter","parts":[{"content":"","type":"text"}],"role":"assistant"}]
        "#);
    }

    fn result_of(call_id: &str, contents: Vec<Content>) -> Content {
        Content::ToolResult(ToolResult { call_id: call_id.to_owned(), contents, is_error: false })
    }
}
