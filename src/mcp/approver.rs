//! The approver of a call: somebody on this host, or the client.

use std::sync::Mutex;
use std::sync::mpsc as blocking;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ElicitRequestParams, ElicitResult, ProtocolVersion};
use rmcp::service::RequestContext;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::form;
use super::notices::Notices;
use crate::approval::{
    ApprovalDecision, ApprovalRequest, Approver, ApproverError, CancelHandle, Presentation, RequestMessage,
};
use crate::policy::Channel;
use crate::policy::path::escape;
use crate::tools::ExtraApprover;
use crate::tools::serving::{ApproverChain, ApproverSource};

/// How a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElicitationMode {
    /// Not at all.
    Unsupported,
    /// By a request of the server, while the call waits.
    ByRequest,
    /// By returning the call with the question; the client repeats it with the answer.
    ByReturn,
}

impl ElicitationMode {
    /// What the client of this request supports.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let can = context.client_capabilities().as_ref().is_some_and(shows_forms);
        let returns = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (can, returns) {
            (false, _) => Self::Unsupported,
            (true, false) => Self::ByRequest,
            (true, true) => Self::ByReturn,
        }
    }
}

/// A client that names no mode shows forms.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The approver of one call.
pub(super) struct CallApprover {
    pub(super) approver: Box<dyn Approver + Send>,
    pub(super) withdraw: Option<CancelHandle>,
    /// Answers questions while the command of the call runs.
    pub(super) another: Option<ExtraApprover>,
    /// Questions to send to the client while its call waits.
    pub(super) questions: mpsc::Receiver<Question>,
    /// The question to return with the call.
    pub(super) question_to_return: Arc<Mutex<Option<RequestMessage>>>,
}

/// A question for a client, and the channel for its answer.
pub(super) struct Question {
    form: ElicitRequestParams,
    answer: blocking::SyncSender<Result<ElicitResult, ApproverError>>,
}

/// An answer that came with a repeated call, and the fingerprint of its question.
#[derive(Debug)]
pub(super) struct ReturnedAnswer {
    pub(super) fingerprint: String,
    pub(super) answer: ElicitResult,
}

/// Selects the first available approver, and reports its decisions.
pub(super) fn call_approver(
    asking: &ApproverChain,
    notices: &Arc<Notices>,
    client: ElicitationMode,
    returned_answer: Option<ReturnedAnswer>,
) -> CallApprover {
    let mut selected = select(asking, client, returned_answer);
    selected.approver = Box::new(ReportingApprover {
        inner: selected.approver,
        notices: Arc::clone(notices),
    });
    if let Some(another) = selected.another.take() {
        let notices = Arc::clone(notices);
        selected.another = Some(Arc::new(move || {
            let (inner, withdraw) = another()?;
            let notices = Arc::clone(&notices);
            Ok((Box::new(ReportingApprover { inner, notices }), withdraw))
        }));
    }
    selected
}

fn select(asking: &ApproverChain, client: ElicitationMode, returned_answer: Option<ReturnedAnswer>) -> CallApprover {
    let (sender, questions) = mpsc::channel(1);
    let question_to_return = Arc::new(Mutex::new(None));
    let channel = asking.order.iter().find(|way| match way {
        ApproverSource::Here(_) => true,
        ApproverSource::Elicitation => client != ElicitationMode::Unsupported,
    });
    let nobody = |why: String| -> (Box<dyn Approver + Send>, Option<CancelHandle>) { (Box::new(Nobody(why)), None) };
    let another = during_command(channel, client, &sender, asking.patience);
    let (approver, withdraw) = match (channel, client) {
        (Some(ApproverSource::Here(make)), _) => match make() {
            Ok((approver, withdraw)) => (approver, Some(withdraw)),
            Err(error) => nobody(error.to_string()),
        },
        (Some(ApproverSource::Elicitation), ElicitationMode::ByRequest) => {
            let approver: Box<dyn Approver + Send> = Box::new(RequestApprover {
                questions: sender,
                timeout: asking.patience,
            });
            (approver, None)
        }
        (Some(ApproverSource::Elicitation), ElicitationMode::ByReturn) => {
            let approver: Box<dyn Approver + Send> = Box::new(ReturnApprover {
                returned_answer,
                question_to_return: Arc::clone(&question_to_return),
            });
            (approver, None)
        }
        (Some(ApproverSource::Elicitation), ElicitationMode::Unsupported) | (None, _) => nobody(match asking.order.as_slice() {
            [] => "`approval.channel` names nobody who is here (a socket and a program are named by flags)".to_owned(),
            _ => {
                "this client shows no forms, and nobody else was named (`--approvals-socket` and `stockade approvals`, \
                  or `--approver-program`)"
                    .to_owned()
            }
        }),
    };
    CallApprover {
        approver,
        withdraw,
        another,
        questions,
        question_to_return,
    }
}

/// The approver while a command runs. A client that is asked by return cannot answer then.
fn during_command(
    channel: Option<&ApproverSource>,
    client: ElicitationMode,
    sender: &mpsc::Sender<Question>,
    timeout: Duration,
) -> Option<ExtraApprover> {
    match (channel?, client) {
        (ApproverSource::Here(make), _) => {
            let make = Arc::clone(make);
            Some(Arc::new(move || {
                let (approver, withdraw) = make()?;
                Ok((approver, Some(withdraw)))
            }))
        }
        (ApproverSource::Elicitation, ElicitationMode::ByRequest) => {
            let sender = sender.clone();
            Some(Arc::new(move || {
                let questions = sender.clone();
                let approver: Box<dyn Approver + Send> = Box::new(RequestApprover { questions, timeout });
                Ok((approver, None))
            }))
        }
        (ApproverSource::Elicitation, ElicitationMode::ByReturn | ElicitationMode::Unsupported) => {
            Some(Arc::new(|| {
                Err(ApproverError::Nobody(
                    "this client is asked only between calls; have the config list the host".to_owned(),
                ))
            }))
        }
    }
}

/// Forwards questions to the client of this request; never ends.
pub(super) async fn forward_questions(
    mut questions: mpsc::Receiver<Question>,
    context: &RequestContext<RoleServer>,
    timeout: Duration,
    cancelled: &CancellationToken,
) {
    while let Some(Question { form, answer }) = questions.recv().await {
        let elicitation = context.peer.create_elicitation_with_timeout(form, Some(timeout));
        let reply = tokio::select! {
            reply = elicitation => reply.map_err(|error| match error {
                rmcp::ServiceError::Timeout { .. } => ApproverError::TimedOut(timeout),
                error => ApproverError::NoDecision(client_text(&error.to_string())),
            }),
            () = cancelled.cancelled() => Err(ApproverError::Cancelled),
        };
        // A cancellation takes precedence over an answer.
        let reply = if context.ct.is_cancelled() {
            Err(ApproverError::Cancelled)
        } else {
            reply
        };
        // The approver may be gone.
        let _sent = answer.send(reply);
    }
    std::future::pending::<()>().await;
}

/// The beginning of a client's text, escaped.
fn client_text(text: &str) -> String {
    const MAX_CHARS: usize = 400;
    let beginning: String = text.chars().take(MAX_CHARS).collect();
    escape(beginning.as_bytes())
}

/// Asks the client by a request, and waits.
struct RequestApprover {
    questions: mpsc::Sender<Question>,
    timeout: Duration,
}

impl Approver for RequestApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let question = RequestMessage::of(request, presentation);
        let form = form::elicitation(&question)?;
        let (answer, answered) = blocking::sync_channel(1);
        let closed = || ApproverError::NoDecision("the client is gone".to_owned());
        self.questions
            .blocking_send(Question { form, answer })
            .map_err(|_| closed())?;
        // Longer than the client's own timeout, whose error says more.
        let answer = answered
            .recv_timeout(self.timeout.saturating_add(Duration::from_secs(5)))
            .map_err(|_| closed())??;
        form::read_decision(answer, &question)
    }

    fn channel(&self) -> Channel {
        Channel::Elicitation
    }
}

/// Takes the answer that came with the call, if it is for this question; else returns the question.
struct ReturnApprover {
    returned_answer: Option<ReturnedAnswer>,
    question_to_return: Arc<Mutex<Option<RequestMessage>>>,
}

impl Approver for ReturnApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let question = RequestMessage::of(request, presentation);
        if let Some(returned_answer) = self.returned_answer.take()
            && returned_answer.fingerprint == question.fingerprint
        {
            return form::read_decision(returned_answer.answer, &question);
        }
        let mut question_to_return = self
            .question_to_return
            .lock()
            .map_err(|_| ApproverError::NoDecision("the question was lost".to_owned()))?;
        *question_to_return = Some(question);
        Err(ApproverError::Deferred)
    }

    fn channel(&self) -> Channel {
        Channel::Elicitation
    }
}

/// Reports each decision and its channel.
struct ReportingApprover {
    inner: Box<dyn Approver + Send>,
    notices: Arc<Notices>,
}

impl Approver for ReportingApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let answer = self.inner.ask(request, presentation);
        let tool = escape(request.tool_name.as_bytes());
        let channel = self.inner.channel();
        match &answer {
            Ok(decision) if decision.approved => self.notices.send(&format!("{tool}: approved ({channel})")),
            Ok(_) => self.notices.send(&format!("{tool}: denied ({channel})")),
            Err(ApproverError::Deferred) => {}
            Err(error) => self.notices.send(&format!("{tool}: denied: {error}")),
        }
        answer
    }

    fn channel(&self) -> Channel {
        self.inner.channel()
    }
}

/// Denies: nobody can be asked.
struct Nobody(String);

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::Nobody(self.0.clone()))
    }
}
