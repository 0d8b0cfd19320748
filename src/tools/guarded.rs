//! A tool with approval around it: the config's word, a hook, memory, mode, a person.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::sync::mpsc;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::call::ToolError;
use super::deciding::{Deciding, decide_all, lost};
use super::hook::Hook;
use super::on_record::with_recovery;
use super::output::Output;
use super::overriding::{Loosening, apply_override, overridden, question_or_default};
use super::prepared::Prepared;
use super::recorder::{self, OpenCall};
use super::restored::Recovered;
use super::tool::{ApprovalContext, Assessed, Assessment, Boxed, Effect, Tool};
use crate::approval::{ApprovalRequest, DecidedBy, Verdict};
use crate::policy::{Requirement, ToolRule};

/// What the guards of one session share.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(super) deciding: Deciding,
    pub(super) rules: Arc<BTreeMap<String, ToolRule>>,
    /// What would allow a call that nothing speaks of.
    pub(super) loosening: Loosening,
    pub(super) hook: Option<Hook>,
    /// Who calls through it, if it is not the agent itself.
    pub(super) caller: Option<String>,
    pub(super) stops: Arc<Mutex<mpsc::Receiver<Signal>>>,
    /// What was put back before a call, for the call to tell.
    pub(super) recovered: Recovered,
}

impl Guard {
    /// The same for somebody whom the caller delegates to.
    pub(super) fn delegate(&self, name: &str) -> Self {
        let caller = match &self.caller {
            Some(caller) => format!("{caller} › {name}"),
            None => name.to_owned(),
        };
        Self {
            caller: Some(caller),
            ..self.clone()
        }
    }

    /// The same, where the config pre-approves nothing of this name: what it spoke of is not what it was.
    pub(super) fn without_pre_approval(mut self, name: &str) -> Self {
        let pre_approves = |rule: &ToolRule| rule.approval.requirement() == Requirement::PreApproved;
        if self.rules.get(name).is_some_and(pre_approves) {
            let mut rules = BTreeMap::clone(&self.rules);
            rules.remove(name);
            self.rules = Arc::new(rules);
        }
        self
    }
}

#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) context: ApprovalContext,
    pub(super) prepared: Prepared,
    pub(super) question: Option<ApprovalRequest>,
    /// Where there is a log: the call as it stands there.
    pub(super) open: Option<OpenCall>,
}

/// Records the outcome of a call, where there is a log.
pub(super) async fn record_outcome(
    guard: &Guard,
    open: Option<OpenCall>,
    done: Result<Output, ToolError>,
) -> Result<Output, ToolError> {
    let call = open.as_ref().map(OpenCall::name);
    let done = with_recovery(&guard.recovered, guard.deciding.recorder.as_ref(), call, done).await;
    match open {
        Some(open) => open.end(done).await,
        None => done,
    }
}

pub(super) async fn ask(
    guard: &Guard,
    requests: Vec<ApprovalRequest>,
) -> Result<Vec<Result<(), ToolError>>, ToolError> {
    let mut stops = guard.stops.lock().await;
    let verdicts = decide_all(&guard.deciding, requests, &mut stops).await?;
    let answer = |verdict: Verdict| match (verdict.denial, verdict.by) {
        (None, _) => Ok(()),
        (Some(_), DecidedBy::Pending) => Err(ToolError::Pending),
        (Some(denial), _) => Err(ToolError::Denied(denial)),
    };
    Ok(verdicts.into_iter().map(answer).collect())
}

/// How often a call is assessed anew because what it was about changed while somebody was asked.
pub(super) const MAX_RETRIES: usize = 3;

/// A tool with approval around it.
///
/// [`Session::guarded`](crate::Session::guarded) makes one, for a tool that is called by itself; a [`ToolSet`](crate::ToolSet) guards
/// what is added to it. [`call`](Tool::call) assesses, asks what must be asked, runs the tool, and logs all of it. It assesses
/// again where what it was approved for has changed meanwhile.
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{ApprovalContext, FunctionTool, Prepared, Session, Tool as _, ToolError};
///
/// # async fn run(session: &Session) -> Result<(), ToolError> {
/// let clock = FunctionTool::new("clock", "Tell the time.", json!({"type": "object"}), |_| async { Ok(json!("noon")) });
/// let mut clock = session.guarded(Box::new(clock));
/// let output = clock.call(&ApprovalContext::new("clock", json!({})), Prepared::nothing()).await?;
/// assert_eq!(output.text, "noon");
/// # Ok(())
/// # }
/// ```
pub struct Guarded {
    tool: Box<dyn Tool>,
    guard: Guard,
}

impl Guarded {
    /// The tool behind a guard. [`Session::guarded`](crate::Session::guarded) has the guard of a session.
    pub(super) fn new(tool: Box<dyn Tool>, guard: Guard) -> Self {
        Self { tool, guard }
    }

    /// Assesses a call as the config and the hook see it.
    async fn judge(&mut self, context: &ApprovalContext) -> Result<Assessed, ToolError> {
        let Assessed {
            assessment,
            prepared,
            override_by_config,
        } = self.tool.assess(context).await?;
        let rule = self.guard.rules.get(self.tool.name());
        let assessment = overridden(rule, assessment, override_by_config, context);
        let assessment = match &self.guard.hook {
            Some(hook) => apply_override(hook(context, &assessment), assessment, context),
            None => assessment,
        };
        Ok(Assessed {
            assessment: self.guard.loosening.explain(assessment, context),
            prepared,
            override_by_config,
        })
    }

    /// A call, as far as it goes without asking. It is on record before anything is looked at.
    pub(super) async fn begin(&mut self, context: &ApprovalContext) -> Result<PendingCall, ToolError> {
        let mut context = self.named(context);
        let arguments = self.tool.recorded(&context.args);
        let open = OpenCall::of(self.guard.deciding.recorder.as_ref(), &context, arguments).await?;
        context.call = open.as_ref().map(|open| open.name().to_owned());
        match self.begin_named(context).await {
            Ok(pending) => Ok(PendingCall { open, ..pending }),
            Err(error) => match record_outcome(&self.guard, open, Err(error)).await {
                Err(error) => Err(error),
                Ok(_) => Err(lost()),
            },
        }
    }

    /// The same once the context names caller and tool.
    async fn begin_named(&mut self, context: ApprovalContext) -> Result<PendingCall, ToolError> {
        let Assessed {
            assessment, prepared, ..
        } = self.judge(&context).await?;
        if let (Some(recorder), Some(call)) = (&self.guard.deciding.recorder, &context.call) {
            recorder.note(vec![recorder::assessment(call, &assessment)]).await?;
        }
        let question = match assessment {
            Assessment::Blocked(why) => return Err(ToolError::Blocked(why)),
            Assessment::PreApproved(_) => None,
            Assessment::NeedsApproval(request) => Some(*request),
            Assessment::NoOpinion(question) => Some(question_or_default(question, &context)),
        };
        let question = question.map(|question| ApprovalRequest {
            group_id: context.group_id.clone().or_else(|| question.group_id.clone()),
            call: context.call.clone(),
            ..question
        });
        Ok(PendingCall {
            context,
            prepared,
            question,
            open: None,
        })
    }

    /// The rest of it, after whatever it asked was answered with yes. What changed meanwhile is asked about anew.
    pub(super) async fn end(&mut self, mut pending: PendingCall) -> Result<Output, ToolError> {
        let open = pending.open.take();
        let done = self.carry_out(pending).await;
        record_outcome(&self.guard, open, done).await
    }

    async fn carry_out(&mut self, mut pending: PendingCall) -> Result<Output, ToolError> {
        let mut tries = 0..MAX_RETRIES;
        loop {
            match self.tool.call(&pending.context, pending.prepared).await {
                // What the yes was about is no longer there.
                Err(ToolError::Changed(_)) if tries.next().is_some() => {
                    pending = self.reassess(pending.context).await?;
                }
                done => return done,
            }
        }
    }

    async fn reassess(&mut self, context: ApprovalContext) -> Result<PendingCall, ToolError> {
        let mut pending = self.begin_named(context).await?;
        if let Some(question) = pending.question.take() {
            self.ask_one(question).await?;
            pending.prepared = pending.prepared.approved();
        }
        Ok(pending)
    }

    async fn ask_one(&self, question: ApprovalRequest) -> Result<(), ToolError> {
        let mut answers = ask(&self.guard, vec![question]).await?;
        answers.pop().unwrap_or_else(|| Err(lost()))
    }

    fn named(&self, context: &ApprovalContext) -> ApprovalContext {
        let context = ApprovalContext {
            tool_name: self.tool.name().to_owned(),
            ..context.clone()
        };
        match &self.guard.caller {
            Some(caller) => context.called_by(caller),
            None => context,
        }
    }
}

impl Tool for Guarded {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> String {
        self.tool.description()
    }

    fn input_schema(&self) -> Value {
        self.tool.input_schema()
    }

    fn output_schema(&self) -> Option<Value> {
        self.tool.output_schema()
    }

    fn effect(&self) -> Effect {
        self.tool.effect()
    }

    fn recorded(&self, args: &Value) -> Value {
        self.tool.recorded(args)
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let context = self.named(context);
            self.judge(&context).await
        })
    }

    /// Assesses the call, asks what must be asked, and runs the tool. What was prepared before is not used.
    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        _prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let mut pending = self.begin(context).await?;
            if let Some(question) = pending.question.take() {
                if let Err(denied) = self.ask_one(question).await {
                    return record_outcome(&self.guard, pending.open, Err(denied)).await;
                }
                pending.prepared = pending.prepared.approved();
            }
            self.end(pending).await
        })
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("tool", &self.tool.name())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}
