//! A command that lives as long as the session, and that Stockade talks with over its standard input and output.
//!
//! Whoever started Stockade named it, and nobody is asked about it. So it gets what needs no asking: roots that need
//! a yes to be written are read-only for it, roots that need one to be read do not exist, and no later yes changes
//! that. What it says to standard error is passed on line by line ([`stderr_lines`]).
//!
//! **Rules.** The person who starts Stockade decides what is served, so `shell.default` says nothing about it: that is
//! what the agent may run where no rule speaks. A rule with `allowed: false` that matches the command forbids it
//! all the same, because that holds for everybody. So does the network of a rule that matches it.
//!
//! **Time.** `shell.limits.timeout` is for one call of it, not for its life; every other limit holds for its whole
//! tree. It ends with the session; when it ends by itself it is not started again.

mod end;
mod record;
mod stderr_lines;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::assessor::judged;
use super::call::{NAME, ShellCommand, ToolError, argv, words};
use super::enforcement::Enforcement;
use super::environment::environment;
use super::executor::Executor;
use super::limits::{command_limits, counting};
use super::network::{About, Bounds, NetworkUse, ProxySession};
use super::on_record::failed;
use super::outcome::Status;
use super::pool::Pool;
use super::profiles::Derived;
use super::regime::RegimeLine;
use super::run_command::{END_TIMEOUT, sleep_until};
use super::search::Search;
use super::session::Session;
use crate::confine::io::{Pipe, PipeEnds, make_pipes};
use crate::confine::wire::protocol::Work;
use crate::confine::{ConfineError, Confinement, ForkerFor, Launch, Running};
use crate::policy::path::escape;
use crate::policy::shell::{Judgement, RuleNetwork, RuleRef};
use crate::policy::{AbsPath, Access, Operation, Requirement, Right};
use crate::profile::{ApprovedRoots, Call, FileReach};
pub use end::ServedEnd;
use record::Record;

/// How long a command that was told that its input has ended may take to end by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long its last words may take to be taken once it has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// A command that was started.
///
/// Dropping it ends the command and its whole tree, but does not wait for that; [`finish`](Self::finish) does.
#[derive(Debug)]
pub struct Served {
    ended: watch::Receiver<Option<Arc<ServedEnd>>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    /// How long one call of it may take.
    pub call_time: Option<Duration>,
    /// How many bytes one call of it may give.
    pub call_output: Option<u64>,
}

/// The streams of a command: what is written, it reads; what is read, it wrote.
#[derive(Debug)]
pub struct ServedStreams {
    /// Its standard input.
    pub input: Pipe,
    /// Its standard output.
    pub output: Pipe,
}

/// How the end of a command is watched for by others than who holds it.
#[derive(Debug, Clone)]
pub struct Ending(watch::Receiver<Option<Arc<ServedEnd>>>);

impl Ending {
    /// How it ended, if it has.
    pub fn now(&self) -> Option<Arc<ServedEnd>> {
        self.0.borrow().clone()
    }

    /// Waits for the end; `None` where nobody is left who could say how.
    pub async fn wait(&mut self) -> Option<Arc<ServedEnd>> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl Served {
    /// A handle that tells when it has ended.
    pub fn ending(&self) -> Ending {
        Ending(self.ended.clone())
    }

    /// Ends it, and waits until its whole tree is dead, protected names are restored and nothing of it is left.
    ///
    /// Whoever holds its [streams](ServedStreams) drops them first: a server ends by itself when its input does.
    pub async fn finish(mut self) -> Option<Arc<ServedEnd>> {
        // One that ends within that time by itself is told nothing.
        let _late = tokio::time::timeout(EXIT_TIMEOUT, self.ending().wait()).await;
        drop(self.stop.take());
        // A task that was aborted with its runtime has dropped the forker, which ends all.
        let _ended = (&mut self.task).await;
        self.ending().now()
    }
}

impl Session {
    /// Starts a command that lives as long as the session, in the working directory. What it says to standard error
    /// goes to `notices`, as lines that are safe to show; who does not take them makes it wait.
    pub async fn serve(
        &self,
        command_argv: Vec<OsString>,
        notices: mpsc::Sender<String>,
    ) -> Result<(Served, ServedStreams), ToolError> {
        let directory = self.shared().started_in()?;
        let mut executor = self.shared().executor.lock().await;
        serve(&mut executor, command_argv, &directory, notices).await
    }

    /// The roots that such a command may only read, because they ask for a yes before they are written.
    pub async fn asked_before_written(&self) -> Vec<String> {
        let executor = self.shared().executor.lock().await;
        if executor.is_unconfined() {
            return Vec::new();
        }
        let roots = executor.session().policy.roots.iter();
        roots
            .filter(|root| {
                root.rights.has(Right::Write) && root.write_approval.requirement() != Requirement::PreApproved
            })
            .map(|root| root.name.clone())
            .collect()
    }

    /// What holds for such a command, in one line.
    pub async fn served_regime_line(&self, argv: &[OsString]) -> Result<RegimeLine, ToolError> {
        let directory = self.shared().started_in()?;
        let command = ShellCommand::Argv(argv.to_vec());
        let mut executor = self.shared().executor.lock().await;
        let judgement = judged(&executor.session().policy, &command, (&directory, &directory));
        served_regime_line(&mut executor, &judgement)
    }
}

fn served_regime_line(executor: &mut Executor, judgement: &Judgement) -> Result<RegimeLine, ToolError> {
    let profile = served_profile(executor, judgement)?.profile;
    Ok(RegimeLine::of(executor.pool.chosen(), &profile, &executor.session().policy)?.of_a_server())
}

/// What needs no asking; of what rules say of the command, their network holds.
fn served_profile(executor: &mut Executor, judgement: &Judgement) -> Result<Derived, ToolError> {
    let call = Call {
        network: judgement.network.override_of(&executor.session().policy.network),
        ..Call::of(ApprovedRoots::None)
    };
    executor.profiles.of(&call)
}

async fn serve(
    executor: &mut Executor,
    command_argv: Vec<OsString>,
    directory: &AbsPath,
    notices: mpsc::Sender<String>,
) -> Result<(Served, ServedStreams), ToolError> {
    match try_to_serve(executor, command_argv, directory, notices).await {
        Ok(served) => Ok(served),
        Err(error) => Err(failed(executor.deciding.recorder.as_ref(), &executor.recovered, error).await),
    }
}

async fn try_to_serve(
    executor: &mut Executor,
    command_argv: Vec<OsString>,
    directory: &AbsPath,
    notices: mpsc::Sender<String>,
) -> Result<(Served, ServedStreams), ToolError> {
    executor.pool.chosen().ensure_usable()?;
    let command = ShellCommand::Argv(command_argv);
    let judgement = judged(&executor.session().policy, &command, (directory, directory));
    forbidden(&judgement)?;
    // A rule that gives a network of its own names a program outside what the session may write.
    let search = match judgement.network {
        RuleNetwork::Default => Search::Everywhere,
        RuleNetwork::Own { .. } => Search::outside(BTreeSet::new()),
    };
    let derived = served_profile(executor, &judgement)?;
    let profile = Arc::clone(&derived.profile);
    let confined = matches!(executor.pool.chosen().enforcement, Enforcement::Confined(_));
    if confined && profile.access(Operation::List, directory) == Access::Denied {
        return Err(ToolError::Directory(directory.as_path().to_owned()));
    }
    let (child, PipeEnds { stdin, stdout, stderr }) = make_pipes()?;
    let mut forker = executor
        .pool
        .start(&profile, ForkerFor::Others, &ApprovedRoots::None)
        .await?;
    let mut limits = command_limits(
        &profile.limits,
        None,
        counting(&executor.pool.chosen().enforcement, &profile),
    );
    limits.timeout_ms = None;
    let record = Record::of(executor.deciding.recorder.as_ref());
    let digest = derived.digest();
    let started = record.start(&command, directory, &digest, executor.pool.chosen().regime_name());
    if let Err(error) = started.await {
        forker.finish().await;
        return Err(error);
    }
    let proxy_session = match open_proxy(&executor.pool, &mut forker, &derived, &command, &notices).await {
        Ok(proxy_session) => proxy_session,
        Err(error) => {
            forker.finish().await;
            return Err(error);
        }
    };
    let launch = Launch {
        work: Work::Command(argv(command)),
        environment: environment(&executor.pool, &profile, &search, &forker, &[], proxy_session.as_ref()),
        directory: directory.as_path().as_os_str().to_owned(),
        limits,
        input: child.input,
        streams: [child.stdin, child.stdout, child.stderr],
    };
    let running = match forker.launch(launch).await {
        Ok(running) => running,
        Err(error) => {
            forker.finish().await;
            return Err(error.into());
        }
    };
    let recovery = executor.recovered.take().unwrap_or_default();
    record.restored(&recovery).await;
    let (stop, stopped) = oneshot::channel();
    let (ended_sender, ended) = watch::channel(None);
    let served = Served {
        ended,
        stop: Some(stop),
        task: tokio::spawn(async move {
            let mut forwarding = std::pin::pin!(stderr_lines::forward(recovery.messages(), &stderr, &notices));
            let mut watching = std::pin::pin!(watch_over(
                forker,
                running,
                proxy_session,
                stopped,
                (ended_sender, record, &notices)
            ));
            tokio::select! {
                () = &mut forwarding => watching.await,
                // Who does not take what was said last is not waited for.
                () = &mut watching => { let _late = tokio::time::timeout(DRAIN_TIMEOUT, forwarding).await; }
            }
        }),
        call_time: profile.limits.timeout,
        call_output: profile.limits.output,
    };
    let streams = ServedStreams {
        input: stdin,
        output: stdout,
    };
    Ok((served, streams))
}

/// The way out of such a command. Nobody is asked; what is refused is said as it happens.
async fn open_proxy(
    pool: &Pool,
    forker: &mut Confinement,
    derived: &Derived,
    command: &ShellCommand,
    notices: &mpsc::Sender<String>,
) -> Result<Option<ProxySession>, ToolError> {
    let about = About {
        call: None,
        tool_name: NAME.to_owned(),
        command: escape(&words(command)),
        caller: None,
        digest: derived.digest(),
        bounds: Bounds::of(&pool.session().policy, &pool.session().narrowing),
    };
    let notices = notices.clone();
    // Who does not take the line misses it: the command is not made to wait for that.
    let ended_sender = Arc::new(move |line: String| drop(notices.try_send(format!("network: {line}"))));
    ProxySession::open(forker, &derived.profile, about, None, Some(ended_sender)).await
}

/// Waits for the end of a command, and ends it when it is told to.
async fn watch_over(
    forker: Confinement,
    mut running: Running,
    proxy_session: Option<ProxySession>,
    mut stopped: oneshot::Receiver<()>,
    (ended_sender, record, notices): (watch::Sender<Option<Arc<ServedEnd>>>, Record, &mpsc::Sender<String>),
) {
    let mut deadline_at = None;
    let mut must_end = std::pin::pin!(running.must_end());
    let mut is_ending = false;
    let ended = loop {
        tokio::select! {
            ended = running.ended() => break ended,
            () = sleep_until(deadline_at) => break Err(ConfineError::Unresponsive),
            () = &mut must_end, if !is_ending => {
                is_ending = true;
                if let Err(error) = forker.cancel(&running, Signal::SIGKILL).await {
                    break Err(error);
                }
            }
            // Dropped or told: nobody wants it any more.
            _told = &mut stopped, if deadline_at.is_none() => {
                deadline_at = Some(Instant::now() + END_TIMEOUT);
                if let Err(error) = forker.cancel(&running, Signal::SIGTERM).await {
                    break Err(error);
                }
            }
        }
    };
    let mut end = match ended {
        Ok(ended) => ServedEnd {
            status: Status::of(ended.end, deadline_at.map(|_| Signal::SIGTERM as i32)),
            restored: ended.put_back.violations.into_iter().map(Into::into).collect(),
            unsettled: ended.put_back.unsettled.map(|why| escape(why.as_bytes())),
            unrecorded: None,
        },
        Err(error) => ServedEnd {
            status: Status::Failed { why: error.to_string() },
            restored: Vec::new(),
            unsettled: None,
            unrecorded: None,
        },
    };
    // Refused connections were reported as they happened.
    let network = ProxySession::close(proxy_session).await;
    for line in network.iter().flat_map(NetworkUse::reached) {
        // Who does not take it any more has gone.
        let _said = notices.try_send(format!("network: {line}"));
    }
    // It has ended, whether that is on record or not.
    end.unrecorded = record
        .end(&end, network.as_ref())
        .await
        .err()
        .map(|error| error.to_string());
    // Its tree is dead and its names are settled: calls under way need not wait for the forker.
    ended_sender.send_replace(Some(Arc::new(end)));
    forker.finish().await;
}

/// Whether a rule forbids it for everybody.
fn forbidden(judgement: &Judgement) -> Result<(), ToolError> {
    let by_rule = judgement.parts.iter().any(|part| match part.rule {
        RuleRef::Rule(_) => part.requirement == Requirement::Blocked,
        RuleRef::Default => false,
    });
    if !by_rule {
        return Ok(());
    }
    let why = judgement.reason.clone();
    let why = why.unwrap_or_else(|| "a rule of the config forbids it".to_owned());
    Err(ToolError::Blocked(why))
}
