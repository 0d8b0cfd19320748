//! Guards around tools that confine nothing: what is asked, what is done, and what never is.

mod again;
mod builder;
mod custom;
mod filled;
mod given_up;
mod hostile;
mod judging;
mod overriding;
mod remembering;
mod sessions;
mod together;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::call::ToolError;
use super::deciding::Deciding;
use super::guarded::Guard;
use super::hook::Hook;
use super::output::{Output, OutputEnd};
use super::overriding::Loosening;
use super::prepared::{Answered, Prepared};
use super::restored::Recovered;
use super::tool::{ApprovalContext, Assessed, Assessment, Boxed, OverrideByConfig, Tool};
use super::tool_question;
use crate::approval::{
    ApprovalDecision, ApprovalRequest, Approver, ApproverError, Controller, Lazy, Presentation, Remember,
};
use crate::policy::{Demand, Mode, Origin, ToolRule};

/// What a fake tool says of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Blocked,
    PreApproved,
    Needs,
    /// Something that `strict` mode need not deny.
    NeedsNotRequired,
    Nothing,
    /// Nothing, and no word on how it would be asked.
    NothingAtAll,
}

const EVERYTHING: [Says; 6] = [
    Says::Blocked,
    Says::PreApproved,
    Says::Needs,
    Says::NeedsNotRequired,
    Says::Nothing,
    Says::NothingAtAll,
];

/// What happened to a fake tool.
#[derive(Debug, Default)]
struct Log {
    assessed: Vec<ApprovalContext>,
    called: Vec<(ApprovalContext, Answered)>,
    /// How often something was made to be shown.
    shown: usize,
}

/// A tool that says and does what it was told to.
struct Fake {
    name: &'static str,
    says: VecDeque<Says>,
    gives: VecDeque<ToolError>,
    log: Arc<Mutex<Log>>,
}

impl Fake {
    /// One that says the same each time.
    fn new(name: &'static str, says: Says) -> (Self, Arc<Mutex<Log>>) {
        Self::changing(name, [says])
    }

    /// One that says one after the other, and the last for ever.
    fn changing(name: &'static str, says: impl IntoIterator<Item = Says>) -> (Self, Arc<Mutex<Log>>) {
        let log = Arc::new(Mutex::new(Log::default()));
        let fake = Self {
            name,
            says: says.into_iter().collect(),
            gives: VecDeque::new(),
            log: Arc::clone(&log),
        };
        (fake, log)
    }

    /// The same, whose first calls fail so.
    fn failing(self, gives: impl IntoIterator<Item = ToolError>) -> Self {
        Self {
            gives: gives.into_iter().collect(),
            ..self
        }
    }

    fn question(&self, context: &ApprovalContext) -> Box<ApprovalRequest> {
        let log = Arc::clone(&self.log);
        Box::new(ApprovalRequest {
            presentation: Lazy::new(move || {
                log.lock().unwrap().shown += 1;
                Ok(Presentation::Text("shown".to_owned()))
            }),
            ..tool_question::by_name(context, format!("use {}", self.name), context.args.clone())
        })
    }
}

impl Tool for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> String {
        "a fake".to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            self.log.lock().unwrap().assessed.push(context.clone());
            let says = match self.says.len() {
                0 | 1 => self.says[0],
                _ => self.says.pop_front().unwrap(),
            };
            let question = self.question(context);
            let assessment = match says {
                Says::Blocked => Assessment::Blocked("the tool says no".to_owned()),
                Says::PreApproved => Assessment::PreApproved(Some(question)),
                Says::Needs => Assessment::NeedsApproval(question),
                Says::NeedsNotRequired => Assessment::NeedsApproval(Box::new(ApprovalRequest {
                    required: false,
                    ..*question
                })),
                Says::Nothing => Assessment::NoOpinion(Some(question)),
                Says::NothingAtAll => Assessment::NoOpinion(None),
            };
            Ok(Assessed {
                override_by_config: OverrideByConfig::Possible,
                assessment,
                prepared: Prepared::of("prepared"),
            })
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let answer = prepared.answer();
            self.log.lock().unwrap().called.push((context.clone(), answer));
            match self.gives.pop_front() {
                Some(error) => Err(error),
                None => Ok(Output {
                    end: OutputEnd::Done,
                    text: format!("{} was used", self.name),
                    data: Value::Null,
                    pictures: Vec::new(),
                }),
            }
        })
    }
}

/// What one question was.
#[derive(Debug, Clone)]
struct Asked {
    tool: String,
    description: String,
    caller: Option<String>,
    payload: Vec<u8>,
    presentation: Presentation,
    why: Vec<String>,
}

/// Answers each question in the same way, and notes it.
struct Person<A>(A, Arc<Mutex<Vec<Asked>>>);

impl<A: FnMut(&ApprovalRequest) -> Result<ApprovalDecision, ApproverError>> Approver for Person<A> {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        self.1.lock().unwrap().push(Asked {
            tool: request.tool_name.clone(),
            description: request.description.clone(),
            caller: request.caller.clone(),
            payload: request.payload.clone(),
            presentation: presentation.clone(),
            why: request.why.clone(),
        });
        (self.0)(request)
    }
}

type Questions = Arc<Mutex<Vec<Asked>>>;

/// A person who answers so.
fn person<A>(answer: A) -> (Box<dyn Approver + Send>, Questions)
where
    A: FnMut(&ApprovalRequest) -> Result<ApprovalDecision, ApproverError> + Send + 'static,
{
    let asked = Questions::default();
    (Box::new(Person(answer, Arc::clone(&asked))), asked)
}

fn saying(approved: bool, remember: Remember) -> (Box<dyn Approver + Send>, Questions) {
    person(move |_| Ok(decided(approved, remember)))
}

fn decided(approved: bool, remember: Remember) -> ApprovalDecision {
    ApprovalDecision {
        approved,
        note: None,
        remember,
    }
}

/// A guard whose questions this approver answers; the stopper must be kept.
fn guard(mode: Mode, approver: Box<dyn Approver + Send>) -> Guard {
    let (stopper, stops) = mpsc::channel(8);
    // Nobody stops anything here, and a closed channel says so too.
    drop(stopper);
    Guard {
        deciding: Deciding::by(Arc::new(Controller::new(mode, approver))),
        rules: Arc::default(),
        loosening: Loosening::ByConfig,
        hook: None,
        caller: None,
        stops: Arc::new(tokio::sync::Mutex::new(stops)),
        recovered: Recovered::default(),
    }
}

/// The same, with an entry under `tools:`.
fn ruling(guard: Guard, tool: &str, approval: Demand) -> Guard {
    let rule = ToolRule {
        approval,
        origin: Origin::Builtin("the config"),
    };
    Guard {
        rules: Arc::new(BTreeMap::from([(tool.to_owned(), rule)])),
        ..guard
    }
}

fn hooked(guard: Guard, hook: Hook) -> Guard {
    Guard {
        hook: Some(hook),
        ..guard
    }
}

fn context(tool: &str) -> ApprovalContext {
    ApprovalContext::new(tool, json!({"x": 1}))
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
