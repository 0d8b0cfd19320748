//! What a command changed of protected names and was undone, offered to a person.
//!
//! It is undone already, whatever the answer. Only a person puts it back: no mode and no earlier yes does, because
//! what the config lets pass without a question is what a command may do, and this it may not. Without a
//! person, or an answer, it stays undone.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::NAME;
use super::deciding::{Deciding, decide};
use super::escape_truncated::escape_truncated;
use super::restored::{Restored, Then};
use crate::approval::{AnswerOf, ApprovalRequest, DecidedBy, Lazy, Presentation};
use crate::confine::Confinement;
use crate::confine::wire::protocol::Offer;
use crate::policy::Mode;
use crate::policy::path::escape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfferResult {
    /// Everything stayed undone.
    Nothing,
    /// Something is there again.
    PutBack,
}

/// Asks once whether to redo what was restored.
pub(super) async fn offer(
    deciding: &Deciding,
    forker: &mut Confinement,
    restored: &mut [Restored],
    call: Option<&str>,
    stops: &mut mpsc::Receiver<Signal>,
) -> OfferResult {
    let asks = match deciding.controller.mode() {
        Mode::Interactive => true,
        Mode::ApproveAll | Mode::Strict => false,
    };
    if restored.is_empty() || !asks {
        return OfferResult::Nothing;
    }
    // A supervisor that is gone puts nothing back; what it restored is restored.
    let Ok(Some(offer)) = forker.offer().await else {
        return OfferResult::Nothing;
    };
    match decide(deciding, question(&offer, call), stops).await {
        Ok(verdict) if verdict.by == DecidedBy::Approver && verdict.decision.approved => {}
        Ok(_) | Err(_) => return OfferResult::Nothing,
    }
    let mut offered = OfferResult::Nothing;
    let done = match forker.put_back(&offer).await {
        Ok(done) => done,
        Err(error) => vec![Err(error.to_string()); offer.entries.len()],
    };
    for ((path, _), done) in offer.entries.iter().zip(done) {
        let then = match done {
            Ok(()) => {
                offered = OfferResult::PutBack;
                Then::PutBack
            }
            Err(why) => Then::NotPutBack(escape_truncated(why.as_bytes())),
        };
        if let Some(told) = restored.iter_mut().find(|told| told.full_path == *path) {
            told.then = then;
        }
    }
    offered
}

fn question(offer: &Offer, call: Option<&str>) -> ApprovalRequest {
    let text = offer.text.clone();
    let entry = |(path, what): &(OsString, String)| {
        format!("{} ({})", escape_truncated(path.as_bytes()), escape(what.as_bytes()))
    };
    let entries: Vec<String> = offer.entries.iter().map(entry).collect();
    ApprovalRequest {
        answer: AnswerOf::ApproverOnly,
        payload: offer.digest.to_vec(),
        presentation: Lazy::new(move || Ok(Presentation::Diff(text.clone()))),
        call: call.map(str::to_owned),
        ..ApprovalRequest::new(
            NAME,
            format!(
                "have {} as the command left {}; protected, and restored now",
                entries.join(", "),
                if entries.len() == 1 { "it" } else { "them" }
            ),
        )
    }
}
