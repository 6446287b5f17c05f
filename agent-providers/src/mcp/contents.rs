//! Results of a server's tools as an agent's.

use agent_core::{Content, ToolOutput};
use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

/// A result, with each part as a model service takes it.
///
/// Text is text, images and sounds are bytes. A resource's text is text under its address, its bytes are bytes. A link
/// is told in words, for few addresses are such that a model's service can follow them. Structured content is JSON
/// text, unless a text says the same.
pub(super) fn output(result: CallToolResult, text_only: bool) -> ToolOutput {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let says_it = |value: &Value| content.iter().filter_map(ContentBlock::as_text).any(|text| says(&text.text, value));
    let structured = structured_content.filter(|value| !says_it(value)).map(|value| Content::Text(value.to_string()));
    let contents = content.into_iter().map(part).chain(structured);
    let contents = contents.map(|content| if text_only { in_words(content) } else { content }).collect();
    ToolOutput { contents, is_error: is_error == Some(true), ..ToolOutput::default() }
}

/// Whether a text says what a value does: the value itself, or its only field, as SDKs wrap what is no object.
fn says(text: &str, value: &Value) -> bool {
    let is = |value: &Value| match value {
        Value::String(string) if string == text => true,
        value => serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value),
    };
    let wrapped = value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    is(value) || wrapped.is_some_and(is)
}

fn part(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => data(image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data(audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => self::link(&link),
        other => Content::Text(format!("[a part of an unknown kind: {other:?}]")),
    }
}

fn data(mime_type: String, base64: &str) -> Content {
    match STANDARD.decode(base64) {
        Ok(data) => Content::Data { mime_type, data },
        Err(error) => Content::Text(format!("[{mime_type} that cannot be read: it is no base64: {error}]")),
    }
}

fn resource(contents: ResourceContents) -> Content {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Content::Text(format!("[{uri}]\n{text}")),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            match data(mime_type, &blob) {
                Content::Data { mime_type, data } if mime_type.starts_with("text/") => {
                    Content::Text(format!("[{uri}]\n{}", String::from_utf8_lossy(&data)))
                }
                other => other,
            }
        }
        other => Content::Text(format!("[a resource of an unknown kind: {other:?}]")),
    }
}

fn link(link: &Resource) -> Content {
    let Resource { uri, name, title, description, mime_type, .. } = link;
    let web = uri.starts_with("https://") || uri.starts_with("http://");
    let media = mime_type.as_deref().is_some_and(|mime| mime.starts_with("image/") || mime == "application/pdf");
    if web && media {
        return Content::Uri { mime_type: mime_type.clone(), uri: uri.clone() };
    }
    let name = title.as_ref().unwrap_or(name);
    let mime_type = mime_type.as_ref().map(|mime_type| format!(" ({mime_type})")).unwrap_or_default();
    let description = description.as_ref().map(|description| format!(": {description}")).unwrap_or_default();
    Content::Text(format!("[{uri}] {name}{mime_type}{description}"))
}

fn in_words(content: Content) -> Content {
    match content {
        Content::Data { mime_type, data } => {
            Content::Text(format!("[{mime_type}, {} bytes, which cannot be shown here]", data.len()))
        }
        Content::Uri { uri, mime_type: Some(mime_type) } => Content::Text(format!("[{uri}] ({mime_type})")),
        Content::Uri { uri, mime_type: None } => Content::Text(format!("[{uri}]")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{Content, ToolOutput};
    use serde_json::{Value, json};

    fn output(result: Value, text_only: bool) -> ToolOutput {
        super::output(serde_json::from_value(result).unwrap(), text_only)
    }

    fn every_kind() -> Value {
        json!({ "content": [
            { "type": "text", "text": "a text" },
            { "type": "image", "mimeType": "image/png", "data": "AQID" },
            { "type": "audio", "mimeType": "audio/wav", "data": "BAU=" },
            { "type": "image", "mimeType": "image/png", "data": "?" },
            { "type": "resource", "resource": { "uri": "demo://1", "mimeType": "text/plain", "text": "a note" } },
            { "type": "resource", "resource": { "uri": "demo://2", "mimeType": "text/csv", "blob": "YTti" } },
            { "type": "resource", "resource": { "uri": "demo://3", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "demo://4", "name": "n", "description": "a file", "mimeType": "text/css" },
            { "type": "resource_link", "uri": "https://a.example/b.png", "name": "n", "mimeType": "image/png" },
        ], "structuredContent": { "sum": 3 } })
    }

    #[test]
    fn each_kind_of_content_is_what_a_service_takes() {
        let text = |text: &str| Content::Text(text.to_owned());
        let contents = vec![
            text("a text"),
            Content::Data { mime_type: "image/png".to_owned(), data: vec![1, 2, 3] },
            Content::Data { mime_type: "audio/wav".to_owned(), data: vec![4, 5] },
            text("[image/png that cannot be read: it is no base64: Invalid symbol 63, offset 0.]"),
            text("[demo://1]\na note"),
            text("[demo://2]\na;b"),
            Content::Data { mime_type: "application/octet-stream".to_owned(), data: vec![0, 0, 0] },
            text("[demo://4] n (text/css): a file"),
            Content::Uri { mime_type: Some("image/png".to_owned()), uri: "https://a.example/b.png".to_owned() },
            text(r#"{"sum":3}"#),
        ];
        assert_eq!(output(every_kind(), false), ToolOutput { contents, ..ToolOutput::default() });
    }

    #[test]
    fn what_is_no_text_is_told_in_words_if_asked() {
        let output = output(every_kind(), true);
        let lines = output.contents.into_iter().map(|content| match content {
            Content::Text(text) => text,
            other => format!("{other:?}"),
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        a text
        [image/png, 3 bytes, which cannot be shown here]
        [audio/wav, 2 bytes, which cannot be shown here]
        [image/png that cannot be read: it is no base64: Invalid symbol 63, offset 0.]
        [demo://1]
        a note
        [demo://2]
        a;b
        [application/octet-stream, 3 bytes, which cannot be shown here]
        [demo://4] n (text/css): a file
        [https://a.example/b.png] (image/png)
        {"sum":3}
        "#);
    }

    #[test]
    fn structured_content_is_not_told_twice() {
        let told = |text: &str, structured: Value| {
            let result = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured });
            output(result, false).contents.len()
        };
        assert_eq!(told("{ \"sum\": 3 }", json!({ "sum": 3 })), 1);
        assert_eq!(told("3", json!({ "result": 3 })), 1);
        assert_eq!(told("a note", json!({ "content": "a note" })), 1);
        assert_eq!(told("a note", json!({ "content": "a note", "bytes": 6 })), 2);
        assert_eq!(told("the sum is 3", json!({ "sum": 3 })), 2);
    }

    #[test]
    fn an_error_is_one() {
        let result = json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true });
        assert_eq!(output(result, false), ToolOutput::error("the disk is full"));
    }
}
