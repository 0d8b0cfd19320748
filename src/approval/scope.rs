//! What a yes covers beyond the call that was asked about.

use serde::{Deserialize, Serialize};

/// The time for which a yes holds, and what for. As JSON: `"none"`, `"session"`, `{"scope": 0}`.
///
/// A tool sets the default in an [`ApprovalRequest`](crate::ApprovalRequest), an approver the answer in an [`ApprovalDecision`](crate::ApprovalDecision).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// This call only.
    #[default]
    None,
    /// Every later call of the session with the same tool and the same payload.
    Session,
    /// For what the request's scope of this number covers, counted from 0.
    Scope(u8),
}

/// Something that a yes for the session can cover, wider than the call that was asked about.
///
/// A yes never covers more than its words name: two calls have the same key only if the words are true of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionScope {
    /// What it covers, in words that follow "yes, and for": `commands that start with git push`.
    pub covers: String,
    /// The key of session memory.
    #[serde(skip)]
    pub key: Vec<u8>,
}

/// What covers more than a plain yes that is remembered so.
pub(crate) fn wider_answers(plain: Remember, scopes: &[SessionScope]) -> Vec<WiderAnswer<'_>> {
    let scopes = (0_u8..)
        .zip(scopes)
        .take(MAX_SCOPES)
        .map(|(number, scope)| WiderAnswer {
            remember: Remember::Scope(number),
            number: number + 2,
            covers: &scope.covers,
        });
    let exactly = WiderAnswer {
        remember: Remember::Session,
        number: 1,
        covers: "exactly this",
    };
    std::iter::once(exactly)
        .chain(scopes)
        .filter(|wider| wider.remember > plain)
        .collect()
}

/// A yes for the session that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WiderAnswer<'a> {
    pub(crate) remember: Remember,
    /// Its key on the terminal, and its number for `stockade approvals`: 1 is exactly this, 2 the first scope.
    pub(crate) number: u8,
    pub(crate) covers: &'a str,
}

/// The most scopes that are offered: each has a digit for its key.
const MAX_SCOPES: usize = 8;
