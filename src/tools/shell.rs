//! The shell tool: one command line or program, judged, asked about, confined, run.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::footing::Footing;
use super::narrowing::Narrowing;
use super::outcome::{Outcome, Status};
use super::plan::{self, PlanError};
use super::regime::RegimeLine;
use super::{approvals, environment, identity};
use crate::approval::{Approver, Controller, Remember};
use crate::backend::Regime;
use crate::backend::seccomp::Role;
use crate::backend::status::protected;
use crate::confine::io::{IoError, OutputMode, Stdin, prepare};
use crate::confine::protocol::{CommandPlan, ProtectSetup};
use crate::confine::session::PrivateDirectories;
use crate::confine::{CommandLimits, ConfineError, Confinement, Launch, PlanDigest, Session, Setup};
use crate::policy::path::display;
use crate::policy::shell::{Judgement, judge, judge_argv};
use crate::policy::{
    AbsPath, Access, Demand, Identity, Limits, Mode, Operation, Policy, Protect, Requirement, Right, Rights,
};
use crate::profile::{Asked, Call, FileReach, Profile, derive};

/// The name under which `tools:` speaks of the shell tool.
pub const NAME: &str = "shell";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellCommand {
    /// A shell line, run by `bash -c`, or `sh -c` where there is no bash.
    Line(OsString),
    /// A program and its arguments, run without a shell.
    Argv(Vec<OsString>),
}

/// One call of the shell tool.
#[derive(Debug)]
pub struct ShellCall {
    /// What to run.
    pub command: ShellCommand,
    /// Where it starts; an absolute path.
    pub directory: PathBuf,
    /// Variables set beside the config's.
    pub environment: Vec<(OsString, OsString)>,
    /// A time limit tighter than the config's.
    pub timeout: Option<Duration>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Where its output goes.
    pub output: OutputMode,
    /// Signals that stop it: the first is passed on and the tree killed after a grace period, the
    /// second kills at once.
    pub stops: mpsc::Receiver<Signal>,
}

/// Why a call gave no outcome. Nothing ran, or it was killed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// This machine cannot confine, and the config wants every call refused then.
    #[error("{0}")]
    Refused(String),
    /// A rule forbids it.
    #[error("blocked: {0}")]
    Blocked(String),
    /// A person or the mode said no.
    #[error("{0}")]
    Denied(String),
    /// The working directory lies in no root.
    #[error("the working directory {} is not readable in this sandbox", display(.0))]
    Directory(PathBuf),
    /// No plan could be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The child could not be confined, or was lost.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The standard streams failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The private directories could not be prepared.
    #[error("failed to prepare the private directories: {0}")]
    Private(#[source] std::io::Error),
}

/// Where the journal and the quarantine of protected names lie, and the user's home.
#[derive(Debug, Clone)]
pub struct Places {
    /// `~/.local/state/stockade`.
    pub state: PathBuf,
    /// The user's home, as the passwd entry has it.
    pub home: PathBuf,
}

/// Runs calls of one session under one policy.
#[derive(Debug)]
pub struct Executor {
    policy: Policy,
    narrowing: Narrowing,
    footing: Footing,
    controller: Controller,
    places: Places,
    session: Option<Live>,
}

#[derive(Debug)]
struct Live {
    confinement: Confinement,
    defined: BTreeSet<PlanDigest>,
}

/// A profile with everything that a launch needs.
struct Prepared {
    digest: PlanDigest,
    plan: CommandPlan,
    profile: Profile,
    private: PrivateDirectories,
}

impl Executor {
    /// An executor for this policy. On a machine that cannot confine this fails, or gives an executor
    /// that refuses every call, as the policy says.
    pub fn new(
        policy: Policy,
        narrowing: Narrowing,
        mode: Mode,
        approver: Box<dyn Approver + Send>,
        places: Places,
    ) -> Result<Self, ToolError> {
        let footing = Footing::find(&policy).map_err(ToolError::Refused)?;
        if let Footing::Confined(_) = &footing
            && policy.roots.iter().any(|root| root.rights.has(Right::Write))
        {
            let Policy {
                protect,
                protect_fallback,
                residuals,
                ..
            } = &policy;
            protected(protect, *protect_fallback, *residuals, Regime::Landlock).map_err(PlanError::from)?;
        }
        Ok(Self {
            policy,
            narrowing,
            footing,
            controller: Controller::new(mode, approver),
            places,
            session: None,
        })
    }

    /// Whether commands of this session run unconfined.
    pub fn is_unconfined(&self) -> bool {
        matches!(self.footing, Footing::Unconfined(_))
    }

    /// What holds, in one line.
    pub fn regime_line(&self) -> Result<RegimeLine, ToolError> {
        let profile = self.profile(&Asked::Everything, None)?;
        match &self.footing {
            Footing::Confined(ground) => Ok(RegimeLine::confined(*ground, &profile, &self.policy)),
            Footing::Unconfined(why) => Ok(RegimeLine::unconfined(why)),
            Footing::Refused(why) => Err(ToolError::Refused(why.clone())),
        }
    }

    /// Judges, asks, confines and runs one call.
    pub async fn shell(&mut self, mut call: ShellCall) -> Result<Outcome, ToolError> {
        if let Footing::Refused(why) = &self.footing {
            return Err(ToolError::Refused(why.clone()));
        }
        let directory = AbsPath::new(&call.directory).map_err(|_| ToolError::Directory(call.directory.clone()))?;
        let judgement = self.judge(&call.command, &directory);
        let (asked, narrow) = self.permission(&call, &judgement)?;
        self.hold_directory(&directory)?;
        self.start_session().await?;
        let prepared = self.prepare(&asked, narrow)?;
        let limits = command_limits(&prepared.profile.limits, call.timeout);
        let output = prepared.profile.limits.output;
        let argv = argv(call.command.clone());
        let environment = environment::build(
            &prepared.profile,
            &prepared.private,
            self.policy.home,
            &call.environment,
        );
        let regime = self.regime_line()?.to_string();
        let Some(live) = &mut self.session else {
            return Err(ConfineError::WorkerDied.into());
        };
        if live.defined.insert(prepared.digest) {
            live.confinement.define(prepared.digest, prepared.plan).await?;
        }
        let (child, parent) = prepare(std::mem::replace(&mut call.stdin, Stdin::Null), call.output)?;
        let started = Instant::now();
        let mut running = live
            .confinement
            .launch(Launch {
                plan: prepared.digest,
                argv,
                environment,
                directory: directory.as_path().as_os_str().to_owned(),
                limits,
                terminal: child.controlling_terminal,
                streams: [child.stdin, child.stdout, child.stderr],
            })
            .await?;
        let confinement = &live.confinement;
        let (dead, tree_is_dead) = tokio::sync::oneshot::channel::<()>();
        let (broken, mut broken_pipe) = mpsc::channel::<()>(1);
        let relay = async {
            let relayed = parent
                .relay(output, async {
                    // The other side is dropped only after it has fired.
                    let _fired = tree_is_dead.await;
                })
                .await;
            if relayed.as_ref().map_or(true, |relayed| relayed.broken_pipe) {
                // Nobody listens when the command has ended already.
                let _told = broken.send(()).await;
            }
            relayed
        };
        let mut stopped = None;
        let stops = &mut call.stops;
        let ended = async {
            let ended = loop {
                tokio::select! {
                    ended = running.ended() => break ended,
                    Some(signal) = stops.recv() => {
                        stopped.get_or_insert(signal as i32);
                        confinement.cancel(&running, signal).await?;
                    }
                    Some(()) = broken_pipe.recv() => {
                        stopped.get_or_insert(Signal::SIGPIPE as i32);
                        confinement.cancel(&running, Signal::SIGKILL).await?;
                    }
                }
            };
            let _drained = dead.send(());
            ended
        };
        let (relayed, ended) = tokio::join!(relay, ended);
        let ended = ended?;
        let relayed = relayed?;
        Ok(Outcome {
            status: Status::of(ended.end, stopped),
            regime,
            duration: started.elapsed(),
            output_bytes: relayed.stdout.total + relayed.stderr.total,
            stdout: text(relayed.stdout.into_bytes()),
            stderr: text(relayed.stderr.into_bytes()),
            restored: ended.violations.into_iter().map(Into::into).collect(),
            unsettled: ended.unsettled,
        })
    }

    /// Ends the session and waits until nothing of it is left.
    pub async fn finish(self) {
        if let Some(live) = self.session {
            live.confinement.finish().await;
        }
    }

    /// A command that cannot read where it starts fails in puzzling ways: better said at once.
    fn hold_directory(&self, directory: &AbsPath) -> Result<(), ToolError> {
        let profile = self.profile(&Asked::Everything, None)?;
        let confined = matches!(self.footing, Footing::Confined(_));
        if confined && profile.access(Operation::List, directory) == Access::Denied {
            return Err(ToolError::Directory(directory.as_path().to_owned()));
        }
        Ok(())
    }

    fn judge(&self, command: &ShellCommand, directory: &AbsPath) -> Judgement {
        let lies_in = |argument: &str, names: &[String]| {
            let Ok(path) = AbsPath::new(directory.as_path().join(argument)) else {
                return false;
            };
            self.policy
                .speaker(&path)
                .is_some_and(|root| names.contains(&root.name))
        };
        let (rules, default) = (&self.policy.rules, &self.policy.default_rule);
        match command {
            ShellCommand::Line(line) => match line.to_str() {
                Some(line) => judge(line, rules, default, &lies_in),
                // A line that is not text is judged by what is shown of it, which no rule can understand.
                None => judge_argv(&[line], rules, default, &lies_in),
            },
            ShellCommand::Argv(argv) => judge_argv(argv, rules, default, &lies_in),
        }
    }

    /// What was asked, and what a rule narrows the call to.
    fn permission(
        &mut self,
        call: &ShellCall,
        judgement: &Judgement,
    ) -> Result<(Asked, Option<Vec<String>>), ToolError> {
        let (requirement, demand) = match (judgement.requirement, self.policy.tools.get(NAME)) {
            (Requirement::Blocked, _) | (_, None) => (judgement.requirement, judgement.demand),
            (_, Some(rule)) => (rule.approval.requirement(), rule.approval),
        };
        match requirement {
            Requirement::PreApproved => Ok((Asked::Nobody, judgement.narrow.clone())),
            Requirement::Blocked => Err(ToolError::Blocked(
                judgement
                    .reason
                    .clone()
                    .unwrap_or_else(|| "a rule of the config forbids it".to_owned()),
            )),
            Requirement::NeedsApproval => {
                let profile = self.profile(&Asked::Everything, judgement.narrow.clone())?;
                let remember = match demand {
                    Demand::OncePerSession => Remember::Session,
                    Demand::None | Demand::Required | Demand::Deny => Remember::None,
                };
                let regime = self.regime_line()?.to_string();
                let request = approvals::request(&self.policy, call, judgement, &profile, regime, remember);
                match self.controller.decide(&request).denial {
                    None => Ok((Asked::Everything, judgement.narrow.clone())),
                    Some(denial) => Err(ToolError::Denied(denial)),
                }
            }
        }
    }

    /// The profile of a call, held against the config, flags applied.
    fn profile(&self, asked: &Asked, narrow: Option<Vec<String>>) -> Result<Profile, ToolError> {
        let profile = derive(
            &self.policy,
            &Call {
                asked: asked.clone(),
                narrow,
            },
        );
        plan::hold_against(&self.policy, &profile)?;
        Ok(if self.narrowing.is_empty() {
            profile
        } else {
            self.narrowing.apply(&profile)
        })
    }

    async fn start_session(&mut self) -> Result<(), ToolError> {
        if self.session.is_some() {
            return Ok(());
        }
        let envelope = self.profile(&Asked::Everything, None)?;
        let outside = |path: &AbsPath| {
            Operation::ALL.into_iter().all(|operation| {
                envelope.access(operation, path) == Access::Denied
                    && path
                        .child("s")
                        .is_none_or(|child| envelope.access(operation, &child) == Access::Denied)
            })
        };
        let session = Session::create(outside)?;
        let worker = match &self.footing {
            Footing::Confined(ground) => {
                let private = [own_directory(&session.private())?];
                let profile = with_canary(envelope.clone().with_private(private), &session)?;
                plan::lower(&profile, Role::Worker, *ground)?.plan.confinement
            }
            Footing::Unconfined(_) => None,
            Footing::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        let protect = self.protect_setup(&envelope);
        let confinement = Confinement::start(Setup {
            worker,
            session,
            protect,
        })
        .await?;
        self.session = Some(Live {
            confinement,
            defined: BTreeSet::new(),
        });
        Ok(())
    }

    fn prepare(&self, asked: &Asked, narrow: Option<Vec<String>>) -> Result<Prepared, ToolError> {
        let Some(live) = &self.session else {
            return Err(ConfineError::WorkerDied.into());
        };
        let session = live.confinement.session();
        let profile = self.profile(asked, narrow)?;
        let digest = plan::digest(&profile);
        let private = session.private_directories(&plan::short_name(&digest))?;
        identity::GitIdentity::of_user(&self.places.home)
            .write_into(&private.home)
            .map_err(ToolError::Private)?;
        let plan = match &self.footing {
            Footing::Confined(ground) => {
                let own = [own_directory(&private.home)?, own_directory(&private.tmp)?];
                let profile = with_canary(profile.clone().with_private(own), session)?;
                plan::lower(&profile, Role::Command, *ground)?.plan
            }
            Footing::Unconfined(_) => plan::unconfined(),
            Footing::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        Ok(Prepared {
            digest,
            plan,
            profile,
            private,
        })
    }

    fn protect_setup(&self, envelope: &Profile) -> Option<ProtectSetup> {
        let Protect::Default(extra) = &self.policy.protect else {
            return None;
        };
        let writable: BTreeSet<OsString> = self
            .policy
            .roots
            .iter()
            .filter(|root| {
                root.rights.has(Right::Write) && envelope.access(Operation::List, &root.path) != Access::Denied
            })
            .map(|root| root.path.as_path().as_os_str().to_owned())
            .collect();
        if writable.is_empty() {
            return None;
        }
        Some(ProtectSetup {
            roots: writable.into_iter().collect(),
            extra: extra.iter().map(|path| path.as_path().as_os_str().to_owned()).collect(),
            store: self.places.state.clone().into_os_string(),
        })
    }
}

/// A directory of the session as a grant needs it: its path and its inode.
fn own_directory(path: &Path) -> Result<(AbsPath, Identity), ToolError> {
    let meta = std::fs::symlink_metadata(path).map_err(ToolError::Private)?;
    let path = AbsPath::new(path).map_err(|error| ToolError::Private(std::io::Error::other(error)))?;
    Ok((
        path,
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
        },
    ))
}

/// Adds the canary that the self-test must be able to read.
fn with_canary(mut profile: Profile, session: &Session) -> Result<Profile, ToolError> {
    use crate::policy::{Grant, Origin, Scope};
    let (path, identity) = own_directory(&session.readable())?;
    let canary = Grant {
        scope: Scope::File,
        ..Grant::tree(path.clone(), Rights::READ, Origin::Builtin("self-test"))
    };
    profile.grants.push(canary);
    profile.identities.insert(path, identity);
    Ok(profile)
}

fn command_limits(limits: &Limits, timeout: Option<Duration>) -> CommandLimits {
    let timeout = match (limits.timeout, timeout) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    CommandLimits {
        timeout_ms: timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        memory: limits.memory,
        processes: limits.processes,
        open_files: limits.open_files,
        file_size: limits.file_size,
    }
}

/// Rules read a line as bash reads it, so bash runs it where there is one.
fn argv(command: ShellCommand) -> Vec<OsString> {
    match command {
        ShellCommand::Argv(argv) => argv,
        ShellCommand::Line(line) => {
            let shell = if Path::new("/bin/bash").exists() {
                "/bin/bash"
            } else {
                "/bin/sh"
            };
            // The dashes end the options: a line may begin with one itself.
            vec![shell.into(), "-c".into(), "--".into(), line]
        }
    }
}

/// Captured output as text; bytes that are not UTF-8 are replaced, because JSON has no others.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        error
            .into_bytes()
            .utf8_chunks()
            .flat_map(|chunk| [chunk.valid(), if chunk.invalid().is_empty() { "" } else { "\u{fffd}" }])
            .collect()
    })
}

/// The words of a command as a person reads them.
pub fn shown(command: &ShellCommand) -> String {
    match command {
        ShellCommand::Line(line) => display(line),
        ShellCommand::Argv(argv) => argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(word: &OsStr) -> String {
    let plain = !word.is_empty()
        && word
            .as_bytes()
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"_-./=:@%+,".contains(b));
    if plain {
        display(word)
    } else {
        format!("'{}'", display(word).replace('\'', "'\\''"))
    }
}
