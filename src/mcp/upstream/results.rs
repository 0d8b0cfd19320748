//! Results of a server's tools → outputs for the agent, bounded.

use rmcp::model::{CallToolResult, ContentBlock, ImageContent, ResourceContents};
use serde_json::Value;

use super::client::excerpt;
use crate::tools::{HeadTail, Output, OutputEnd, Picture};

/// The image types that are passed on.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Bytes of all pictures of a result, in base64.
const MAX_PICTURES: usize = 1 << 20;

/// Replaces content of an unknown kind.
const UNKNOWN: &str = "[content of a kind that is not known]";

/// The text and the data of a result, each of at most so many bytes.
pub(super) fn output(result: CallToolResult, most: u64) -> Output {
    let end = match result.is_error {
        Some(true) => OutputEnd::Failed,
        Some(false) | None => OutputEnd::Done,
    };
    let mut text = HeadTail::new(Some(most));
    let mut pictures = Vec::new();
    let mut first = true;
    let mut add = |more: &str| {
        if !std::mem::take(&mut first) {
            text.push(b"\n");
        }
        text.push(more.as_bytes());
    };
    for block in result.content {
        match block {
            ContentBlock::Text(block) => add(&block.text),
            ContentBlock::Image(image) => match picture(image, &pictures) {
                Ok(picture) => {
                    add(&format!("[{}: below]", picture.mime_type));
                    pictures.push(picture);
                }
                Err(left_out) => add(&left_out),
            },
            ContentBlock::Audio(audio) => add(&left_out(&audio.mime_type, audio.data.len())),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    add(&format!("[{}]", excerpt(&uri)));
                    add(&text);
                }
                ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                    add(&left_out(mime_type.as_deref().unwrap_or("binary"), blob.len()));
                }
                _ => add(UNKNOWN),
            },
            ContentBlock::ResourceLink(link) => add(&format!("[{}: {}]", excerpt(&link.name), excerpt(&link.uri))),
            _ => add(UNKNOWN),
        }
    }
    let data = match result.structured_content {
        Some(data) if data.to_string().len() as u64 <= most => data,
        Some(_) => {
            add(&format!(
                "[its structured content is longer than {most} bytes, and left out]"
            ));
            Value::Null
        }
        None => Value::Null,
    };
    Output {
        end,
        text: lossy(text.finish().into_bytes()),
        data,
        pictures,
    }
}

/// A picture, if its type is allowed and the total is within the limit.
fn picture(image: ImageContent, others: &[Picture]) -> Result<Picture, String> {
    let ImageContent { data, mime_type, .. } = image;
    let taken: usize = others.iter().map(|other| other.base64.len()).sum();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if IMAGE_TYPES.contains(&mime_type.as_str()) && taken + data.len() <= MAX_PICTURES && data.bytes().all(is_base64) {
        Ok(Picture {
            mime_type,
            base64: data,
        })
    } else {
        Err(left_out(&mime_type, data.len()))
    }
}

fn left_out(kind: &str, encoded: usize) -> String {
    format!("[{}: about {} bytes, not passed on]", excerpt(kind), encoded / 4 * 3)
}

/// Converts to text; a character that was cut is replaced.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(result: Value, most: u64) -> Output {
        output(serde_json::from_value(result).unwrap(), most)
    }

    #[test]
    fn content_is_passed_on_in_its_order() {
        let converted = converted(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "mimeType": "image/png", "data": "QUJD"},
                {"type": "image", "mimeType": "image/svg+xml", "data": "QUJD"},
                {"type": "image", "mimeType": "image/png", "data": "A".repeat(2_000_000)},
                {"type": "image", "mimeType": "image/png", "data": "no base64"},
                {"type": "resource", "resource": {"uri": "file:///x\u{1b}", "text": "body"}},
                {"type": "resource_link", "uri": "file:///y", "name": "y"},
                {"type": "text", "text": "two"}
            ], "structuredContent": {"n": 1}}),
            1_000,
        );
        let lines: Vec<&str> = converted.text.lines().collect();
        assert_eq!(
            lines,
            [
                "one",
                "[image/png: below]",
                "[image/svg+xml: about 3 bytes, not passed on]",
                "[image/png: about 1500000 bytes, not passed on]",
                "[image/png: about 6 bytes, not passed on]",
                "[file:///x\\u{1b}]",
                "body",
                "[y: file:///y]",
                "two"
            ]
        );
        assert_eq!((converted.data, converted.end), (json!({"n": 1}), OutputEnd::Done));
        let [picture] = converted.pictures.try_into().unwrap();
        assert_eq!(
            (picture.mime_type.as_str(), picture.base64.as_str()),
            ("image/png", "QUJD")
        );
    }

    #[test]
    fn long_text_keeps_its_ends_and_long_data_is_left_out() {
        let text = format!("start{}end", "é".repeat(10_000));
        let converted = converted(
            json!({"content": [{"type": "text", "text": text}], "structuredContent": {"x": "x".repeat(2_000)}, "isError": true}),
            1_000,
        );
        assert!(converted.text.len() < 1_200, "{}", converted.text.len());
        assert!(converted.text.starts_with("start"), "{}", converted.text);
        assert!(
            converted.text.contains("bytes omitted") && converted.text.ends_with("and left out]"),
            "{}",
            converted.text
        );
        assert_eq!((converted.data, converted.end), (Value::Null, OutputEnd::Failed));
    }
}
