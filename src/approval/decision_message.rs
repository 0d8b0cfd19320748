//! A decision as JSON, from an approver in another process.

use serde::Deserialize;

use super::request::ApprovalDecision;
use super::scope::Remember;

/// `{"approved": true, "note": "…", "remember": "session"}`; note and remember may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionMessage {
    approved: bool,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    remember: Remember,
}

/// Parses a decision; nothing may follow it.
pub(super) fn parse(bytes: &[u8]) -> Result<ApprovalDecision, String> {
    // serde would accept an array of the fields too.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err("the output of the approver program is no JSON object".to_owned());
    }
    let message: DecisionMessage = serde_json::from_slice(bytes)
        .map_err(|error| format!("the output of the approver program is no decision: {error}"))?;
    Ok(ApprovalDecision {
        approved: message.approved,
        note: message.note,
        remember: message.remember,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_read() {
        let decision = parse(b" {\"approved\": true, \"note\": \"n\", \"remember\": \"session\"}\n").unwrap();
        assert!(decision.approved);
        assert_eq!(decision.note.as_deref(), Some("n"));
        assert_eq!(decision.remember, Remember::Session);
        let bare = parse(b"{\"approved\": false}").unwrap();
        assert_eq!((bare.approved, bare.note, bare.remember), (false, None, Remember::None));
    }

    #[test]
    fn what_is_not_exactly_one_decision_is_refused() {
        for wrong in [
            "",
            "yes",
            "true",
            "[true, null, \"none\"]",
            "{}",
            "{\"approved\": \"true\"}",
            "{\"approved\": 1}",
            "{\"approved\": true, \"more\": 1}",
            "{\"approved\": true, \"approved\": true}",
            "{\"approved\": true} {\"approved\": false}",
            "{\"approved\": true}x",
            "{\"approved\": true",
            "{\"approved\": true, \"remember\": \"forever\"}",
            "{\"approved\": true, \"note\": 1}",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(parse(b"{\"approved\": true, \"note\": \"\xff\"}").is_err());
    }
}
