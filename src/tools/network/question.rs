//! The question whether a command may connect to a host that is not listed.

use std::sync::{Arc, Mutex, PoisonError};

use super::bounds::Bounds;
use crate::approval::{
    ApprovalDecision, ApprovalRequest, Approver, ApproverError, CancelHandle, DecidedBy, Fingerprint, Lazy,
    Presentation,
};
use crate::confine::io::Pause;
use crate::policy::hosts::kind;
use crate::policy::path::escape;
use crate::policy::{Channel, Host, HostAccess};
use crate::tools::deciding::Deciding;
use crate::tools::plan::ProfileDigest;
use crate::tools::tool_question;

#[derive(Debug, Clone)]
pub(in crate::tools) struct About {
    /// The tool whose command it is.
    pub(in crate::tools) tool_name: String,
    /// The words of the command, as they are shown.
    pub(in crate::tools) command: String,
    /// Who called it, if it was not the agent itself.
    pub(in crate::tools) caller: Option<String>,
    /// The call that it runs for, as the audit log names it.
    pub(in crate::tools) call: Option<String>,
    /// The name of its profile: a yes for the session holds for commands of the same one.
    pub(in crate::tools) digest: ProfileDigest,
    /// What bounds its network, whatever the config says.
    pub(in crate::tools) bounds: Bounds,
}

/// Who is asked, and what is held up meanwhile.
#[derive(Debug, Clone)]
pub(in crate::tools) struct Asker {
    pub(in crate::tools) deciding: Deciding,
    pub(in crate::tools) hold: Pause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answered {
    Yes,
    No,
    /// Nobody answered, for this reason.
    Nobody(String),
}

/// A question that was put; withdrawn when this says so.
#[derive(Debug, Default)]
pub(super) struct QuestionHandle(Mutex<Withdrawal>);

#[derive(Debug, Default)]
enum Withdrawal {
    #[default]
    NotYet,
    By(CancelHandle),
    Withdrawn,
}

impl QuestionHandle {
    pub(super) fn withdraw(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Withdrawal::By(handle) = std::mem::replace(&mut *state, Withdrawal::Withdrawn) {
            handle.cancel();
        }
    }

    /// Lets this handle withdraw it; at once if that is wanted already.
    fn withdrawn_by(&self, handle: CancelHandle) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            Withdrawal::Withdrawn => handle.cancel(),
            Withdrawal::NotYet | Withdrawal::By(_) => *state = Withdrawal::By(handle),
        }
    }

    fn is_withdrawn(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*state, Withdrawal::Withdrawn)
    }
}

/// The question itself. `process` is who asks, where that was found out.
pub(super) fn request(about: &About, host: &Host, port: u16, process: Option<String>) -> ApprovalRequest {
    let place = format!("{host}:{port}");
    let mut fields = vec![
        ("host".to_owned(), host.to_string()),
        ("port".to_owned(), port.to_string()),
    ];
    if let Host::Address(address) = host {
        fields.push(("address".to_owned(), kind(*address).to_string()));
    }
    fields.push(("command".to_owned(), about.command.clone()));
    fields.extend(process.map(|process| ("process".to_owned(), process)));
    let (allowed_by, why) = match about.bounds.setting(host, port, HostAccess::Asked) {
        None => (
            format!("`shell: {{network: {{allow: [\"{place}\"]}}}}` in the config would allow it"),
            "`shell.network` says `ask: true`, and no entry of its `allow` names this host and port".to_owned(),
        ),
        Some(setting) => (
            "no change to the config alone would allow it".to_owned(),
            format!("`{setting}` gives this host and port after a question only"),
        ),
    };
    ApprovalRequest {
        payload: tool_question::payload(&[b"network", place.as_bytes(), &about.digest]),
        presentation: Lazy::new(move || Ok(Presentation::Structured(fields.clone()))),
        allowed_by,
        why: vec![why],
        caller: about.caller.clone(),
        call: about.call.clone(),
        ..ApprovalRequest::new(
            &about.tool_name,
            format!("connect to {place}, which is not in the list of hosts"),
        )
    }
}

impl Asker {
    /// Puts the question, and waits for the answer on this thread, which has no runtime of its own.
    pub(super) fn ask(
        &self,
        request: ApprovalRequest,
        open: &Arc<QuestionHandle>,
        runtime: &tokio::runtime::Handle,
    ) -> Answered {
        let controller = &self.deciding.controller;
        let fingerprint = Fingerprint::of(&request.payload);
        let verdicts = match &self.deciding.extra_approver {
            None => match &self.deciding.approver {
                Some(approver) => controller.decide_all_by(&[request], approver),
                None => controller.decide_all(&[request]),
            },
            Some(extra_approver) => {
                let (approver, withdraw) = match extra_approver() {
                    Ok(found) => found,
                    Err(error) => return Answered::Nobody(error.to_string()),
                };
                if let Some(withdraw) = withdraw {
                    open.withdrawn_by(withdraw);
                }
                let approver: Box<dyn Approver + Send> = Box::new(PausingApprover {
                    approver,
                    hold: self.hold.clone(),
                    runtime: runtime.clone(),
                    open: Arc::clone(open),
                });
                controller.decide_all_by(&[request], &Mutex::new(approver))
            }
        };
        let Some(verdict) = verdicts.into_iter().next() else {
            return Answered::Nobody("the question was lost".to_owned());
        };
        // A yes that came when nobody waited for it any more is none.
        if open.is_withdrawn() {
            let late_approvals = controller
                .approvals()
                .into_iter()
                .filter(|approval| approval.fingerprint == fingerprint);
            late_approvals.for_each(|approval| drop(controller.revoke(approval.id)));
            return Answered::Nobody("the question was withdrawn".to_owned());
        }
        match (verdict.denial, verdict.by) {
            (None, _) => Answered::Yes,
            (Some(_), DecidedBy::Approver | DecidedBy::Mode(_) | DecidedBy::Memory) => Answered::No,
            (Some(_), DecidedBy::Failure(why) | DecidedBy::Unrecorded(why)) => Answered::Nobody(escape(why.as_bytes())),
            (Some(_), DecidedBy::Pending) => {
                Answered::Nobody("this client is asked only between calls: have the config list the host".to_owned())
            }
        }
    }
}

/// An approver that holds the command's streams up where it asks on the terminal that they use.
struct PausingApprover {
    approver: Box<dyn Approver + Send>,
    hold: Pause,
    runtime: tokio::runtime::Handle,
    open: Arc<QuestionHandle>,
}

impl Approver for PausingApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let _paused = match self.approver.channel() {
            Channel::Terminal => Some(self.runtime.block_on(self.hold.pause())),
            Channel::Program | Channel::Socket | Channel::Elicitation => None,
        };
        let answer = self.approver.ask(request, presentation);
        // What nobody waits for any more is not remembered either.
        if self.open.is_withdrawn() {
            return Err(ApproverError::Cancelled);
        }
        answer
    }

    fn channel(&self) -> Channel {
        self.approver.channel()
    }
}
