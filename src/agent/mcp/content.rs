//! Converts what servers send to text: results for the pipeline, and short lines for display.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Returns the text as one line of at most 200 characters, without control characters.
pub(super) fn short(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Returns a result as text. Images, audio and binary resources are named, not included.
pub(super) fn text(result: &CallToolResult) -> String {
    let mut parts = Vec::new();
    for block in &result.content {
        parts.push(match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("[a picture, {}]", short(&image.mime_type)),
            ContentBlock::Audio(audio) => format!("[a sound, {}]", short(&audio.mime_type)),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("[{}]\n{text}", short(uri)),
                ResourceContents::BlobResourceContents { uri, .. } => format!("[{}: not text]", short(uri)),
                _ => "[a resource of a kind that is not known here]".into(),
            },
            ContentBlock::ResourceLink(link) => format!("[{}: {}]", short(&link.name), short(&link.uri)),
            _ => "[something of a kind that is not known here]".into(),
        });
    }
    if parts.iter().all(|part| part.trim().is_empty()) {
        return match &result.structured_content {
            Some(value) => value.to_string(),
            None => "(no output)".into(),
        };
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text_of(result: serde_json::Value) -> String {
        text(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content_becomes_text() {
        assert_eq!(text_of(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})), "a\nb");
        assert_eq!(
            text_of(json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]})),
            "[a picture, image/png]"
        );
        let resource = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}});
        assert_eq!(text_of(json!({ "content": [resource] })), "[file:///a]\ninside");
        assert_eq!(text_of(json!({"content": [], "structuredContent": {"n": 1}})), "{\"n\":1}");
        assert_eq!(text_of(json!({"content": []})), "(no output)");
        assert_eq!(short("a\x1b[31m  b\n c"), "a[31m b c");
    }
}
