//! What a command changed of protected names and was undone, offered to a person.
//!
//! It is undone already, whatever the answer. Only a person puts it back: no mode and no earlier yes does, because
//! what the config lets pass without a question is what a command may do, and this it may not. Without a
//! person, or an answer, it stays undone.

use tokio::sync::mpsc;

use nix::sys::signal::Signal;

use super::deciding::decide;
use super::executor::Executor;
use super::outcome::shown;
use super::restored::{Restored, Then};
use super::shell::NAME;
use crate::approval::{AnswerOf, ApprovalRequest, DecidedBy, Lazy, Presentation, Remember};
use crate::confine::Confinement;
use crate::confine::protocol::Offer;
use crate::policy::Mode;
use crate::policy::path::{display, escape};

/// What came of offering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// Everything stayed undone.
    Nothing,
    /// Something is there again.
    PutBack,
}

impl Executor {
    /// Offers what was restored, one by one, as long as somebody answers.
    pub(super) async fn offer(
        &mut self,
        worker: &mut Confinement,
        restored: &mut [Restored],
        call: Option<&str>,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Offered {
        let asks = match self.deciding.controller.mode() {
            Mode::Interactive => true,
            Mode::ApproveAll | Mode::Strict => false,
        };
        if restored.is_empty() || !asks {
            return Offered::Nothing;
        }
        // A keeper that is gone puts nothing back; what it restored is restored.
        let offers = worker.offers().await.unwrap_or_default();
        let mut offered = Offered::Nothing;
        for offer in offers {
            let Some(told) = restored.iter_mut().find(|told| told.whole == offer.path) else {
                continue;
            };
            let Ok(verdict) = decide(&self.deciding, question(&offer, call), stops).await else {
                break;
            };
            match verdict.by {
                DecidedBy::Approver => {}
                // Nobody is there: the next question would find nobody either.
                DecidedBy::Mode(_)
                | DecidedBy::Memory
                | DecidedBy::Failure(_)
                | DecidedBy::Unrecorded(_)
                | DecidedBy::Pending => break,
            }
            if !verdict.decision.approved {
                continue;
            }
            told.then = match worker.put_back(&offer).await {
                Ok(Ok(())) => {
                    offered = Offered::PutBack;
                    Then::PutBack
                }
                Ok(Err(why)) => Then::NotPutBack(shown(why.as_bytes())),
                Err(error) => Then::NotPutBack(error.to_string()),
            };
        }
        offered
    }
}

fn question(offer: &Offer, call: Option<&str>) -> ApprovalRequest {
    let text = offer.text.clone();
    ApprovalRequest {
        required: true,
        answer: AnswerOf::ApproverOnly,
        tool_name: NAME.to_owned(),
        description: format!(
            "have {} as the command left it ({}); it is protected, and restored now",
            display(&offer.path),
            escape(offer.what.as_bytes())
        ),
        payload: offer.digest.to_vec(),
        presentation: Lazy::new(move || Ok(Presentation::Diff(text.clone()))),
        group_id: None,
        remember: Remember::None,
        allowed_by: String::new(),
        why: Vec::new(),
        caller: None,
        call: call.map(str::to_owned),
    }
}
