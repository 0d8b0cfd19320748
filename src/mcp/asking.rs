//! Who is asked about a call: somebody here, or the client.

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
use super::voice::Voice;
use crate::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Asked, CancelHandle, Presentation};
use crate::policy::Channel;
use crate::policy::path::escape;
use crate::tools::ExtraApprover;
use crate::tools::serving::{ApproverChain, ApproverSource};

/// How a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// Not at all.
    Never,
    /// By a request of the server's, while its call waits.
    Request,
    /// By giving its call back; it calls again with the answer.
    Return,
}

impl Client {
    /// What the client of this request says of itself.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let can = context.client_capabilities().as_ref().is_some_and(shows_forms);
        let returns = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (can, returns) {
            (false, _) => Self::Never,
            (true, false) => Self::Request,
            (true, true) => Self::Return,
        }
    }
}

/// Forms are what a client shows that names no mode.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Whoever is asked about one call.
pub(super) struct Answering {
    pub(super) approver: Box<dyn Approver + Send>,
    pub(super) withdraw: Option<CancelHandle>,
    /// Who is asked while the command of the call runs.
    pub(super) another: Option<ExtraApprover>,
    /// Questions for the client, while its call waits.
    pub(super) questions: mpsc::Receiver<Question>,
    /// The question that goes back with the call.
    pub(super) returned: Arc<Mutex<Option<Asked>>>,
}

/// A question for a client, and where its answer goes.
pub(super) struct Question {
    form: ElicitRequestParams,
    answer: blocking::SyncSender<Result<ElicitResult, ApproverError>>,
}

/// An answer that a client brought with its call, and the fingerprint of the question that it was asked.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) fingerprint: String,
    pub(super) answer: ElicitResult,
}

/// Finds who is asked: the first way that is open. What they answer is told.
pub(super) fn answering(
    asking: &ApproverChain,
    voice: &Arc<Voice>,
    client: Client,
    brought: Option<Brought>,
) -> Answering {
    let mut found = find(asking, client, brought);
    found.approver = Box::new(Told {
        inner: found.approver,
        voice: Arc::clone(voice),
    });
    if let Some(another) = found.another.take() {
        let voice = Arc::clone(voice);
        found.another = Some(Arc::new(move || {
            let (inner, withdraw) = another()?;
            let voice = Arc::clone(&voice);
            Ok((Box::new(Told { inner, voice }), withdraw))
        }));
    }
    found
}

fn find(asking: &ApproverChain, client: Client, brought: Option<Brought>) -> Answering {
    let (sender, questions) = mpsc::channel(1);
    let returned = Arc::new(Mutex::new(None));
    let open = asking.order.iter().find(|way| match way {
        ApproverSource::Here(_) => true,
        ApproverSource::Elicitation => client != Client::Never,
    });
    let nobody = |why: String| -> (Box<dyn Approver + Send>, Option<CancelHandle>) { (Box::new(Nobody(why)), None) };
    let another = meanwhile(open, client, &sender, asking.patience);
    let (approver, withdraw) = match (open, client) {
        (Some(ApproverSource::Here(make)), _) => match make() {
            Ok((approver, withdraw)) => (approver, Some(withdraw)),
            Err(error) => nobody(error.to_string()),
        },
        (Some(ApproverSource::Elicitation), Client::Request) => {
            let approver: Box<dyn Approver + Send> = Box::new(ByRequest {
                questions: sender,
                patience: asking.patience,
            });
            (approver, None)
        }
        (Some(ApproverSource::Elicitation), Client::Return) => {
            let approver: Box<dyn Approver + Send> = Box::new(ByReturn {
                brought,
                returned: Arc::clone(&returned),
            });
            (approver, None)
        }
        (Some(ApproverSource::Elicitation), Client::Never) | (None, _) => nobody(match asking.order.as_slice() {
            [] => "`approval.channel` names nobody who is here (a socket and a program are named by flags)".to_owned(),
            _ => {
                "this client shows no forms, and nobody else was named (`--approvals-socket` and `stockade approvals`, \
                  or `--approver-program`)"
                    .to_owned()
            }
        }),
    };
    Answering {
        approver,
        withdraw,
        another,
        questions,
        returned,
    }
}

/// Whoever is asked while the command of a call runs. A client that is asked by giving its call back cannot be.
fn meanwhile(
    open: Option<&ApproverSource>,
    client: Client,
    sender: &mpsc::Sender<Question>,
    patience: Duration,
) -> Option<ExtraApprover> {
    match (open?, client) {
        (ApproverSource::Here(make), _) => {
            let make = Arc::clone(make);
            Some(Arc::new(move || {
                let (approver, withdraw) = make()?;
                Ok((approver, Some(withdraw)))
            }))
        }
        (ApproverSource::Elicitation, Client::Request) => {
            let sender = sender.clone();
            Some(Arc::new(move || {
                let questions = sender.clone();
                let approver: Box<dyn Approver + Send> = Box::new(ByRequest { questions, patience });
                Ok((approver, None))
            }))
        }
        (ApproverSource::Elicitation, Client::Return | Client::Never) => Some(Arc::new(|| {
            Err(ApproverError::Nobody(
                "this client is asked only between calls; have the config list the host".to_owned(),
            ))
        })),
    }
}

/// Passes questions on to the client of this request, one after the other; never ends.
pub(super) async fn pass_on(
    mut questions: mpsc::Receiver<Question>,
    context: &RequestContext<RoleServer>,
    patience: Duration,
    cancelled: &CancellationToken,
) {
    while let Some(Question { form, answer }) = questions.recv().await {
        let asked = context.peer.create_elicitation_with_timeout(form, Some(patience));
        let came = tokio::select! {
            came = asked => came.map_err(|error| match error {
                rmcp::ServiceError::Timeout { .. } => ApproverError::TimedOut(patience),
                error => ApproverError::NoDecision(said(&error.to_string())),
            }),
            () = cancelled.cancelled() => Err(ApproverError::Cancelled),
        };
        // Both may have come by now, and what was given up first is not answered.
        let came = if context.ct.is_cancelled() {
            Err(ApproverError::Cancelled)
        } else {
            came
        };
        // Whoever asked may have been given up.
        let _told = answer.send(came);
    }
    std::future::pending::<()>().await;
}

/// What a client says, for people: escaped, and the beginning of it.
fn said(words: &str) -> String {
    const MOST: usize = 400;
    let beginning: String = words.chars().take(MOST).collect();
    escape(beginning.as_bytes())
}

/// Asks the client by a request, and waits.
struct ByRequest {
    questions: mpsc::Sender<Question>,
    patience: Duration,
}

impl Approver for ByRequest {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let asked = Asked::of(request, presentation);
        let form = form::ask(&asked)?;
        let (answer, answered) = blocking::sync_channel(1);
        let gone = || ApproverError::NoDecision("the client is gone".to_owned());
        self.questions
            .blocking_send(Question { form, answer })
            .map_err(|_| gone())?;
        // Longer than the client has, so that what comes from there says why.
        let answer = answered
            .recv_timeout(self.patience.saturating_add(Duration::from_secs(5)))
            .map_err(|_| gone())??;
        form::decided(answer, &asked)
    }

    fn channel(&self) -> Channel {
        Channel::Elicitation
    }
}

/// Takes the answer that came with the call, if it was to this very question; else has the question given back.
struct ByReturn {
    brought: Option<Brought>,
    returned: Arc<Mutex<Option<Asked>>>,
}

impl Approver for ByReturn {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let asked = Asked::of(request, presentation);
        if let Some(brought) = self.brought.take()
            && brought.fingerprint == asked.fingerprint
        {
            return form::decided(brought.answer, &asked);
        }
        let mut returned = self
            .returned
            .lock()
            .map_err(|_| ApproverError::NoDecision("the question was lost".to_owned()))?;
        *returned = Some(asked);
        Err(ApproverError::Deferred)
    }

    fn channel(&self) -> Channel {
        Channel::Elicitation
    }
}

/// Tells whoever started the server what was answered, and where.
struct Told {
    inner: Box<dyn Approver + Send>,
    voice: Arc<Voice>,
}

impl Approver for Told {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let answer = self.inner.ask(request, presentation);
        let tool = escape(request.tool_name.as_bytes());
        let channel = self.inner.channel();
        match &answer {
            Ok(decision) if decision.approved => self.voice.say(&format!("{tool}: approved ({channel})")),
            Ok(_) => self.voice.say(&format!("{tool}: denied ({channel})")),
            Err(ApproverError::Deferred) => {}
            Err(error) => self.voice.say(&format!("{tool}: denied: {error}")),
        }
        answer
    }

    fn channel(&self) -> Channel {
        self.inner.channel()
    }
}

/// Nobody.
struct Nobody(String);

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::Nobody(self.0.clone()))
    }
}
