//! Asks a program that the user chose: the request on its standard input, the decision on its standard output.
//!
//! The program runs unconfined, as the user. So its path must be out of reach of commands, it is resolved once, and its `PATH`
//! has no directory that commands can write. Every failure denies.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::unistd::{AccessFlags, access, geteuid};

use super::approver::{Approver, ApproverError};
use super::cancel::{CancelHandle, Cancelled};
use super::decision_message;
use super::presentation::Presentation;
use super::request::{ApprovalDecision, ApprovalRequest};
use super::request_message::RequestMessage;
use crate::config::{OwnerCheck, holds, identity, walk};
use crate::policy::{AbsPath, Identity, path};

/// The most bytes of a decision.
const MAX_DECISION: usize = 64 * 1024;
/// The most bytes of its standard error that are reported.
const MAX_ERRORS: usize = 4 * 1024;
/// The variables passed on, if they are set.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TERM"];

/// Starts a program, waits for it, and kills what is left of its process group. A higher floor implements this.
pub type RunProgram = fn(&ProgramRun<'_>) -> Result<ProgramOutput, ApproverError>;

/// One run of an approver program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramRun<'a> {
    /// The program; it gets no arguments.
    pub program: &'a Path,
    /// Its whole environment.
    pub environment: &'a [(OsString, OsString)],
    /// What it reads.
    pub input: &'a [u8],
    /// The most bytes it may write to standard output; more fail the run.
    pub output: usize,
    /// The most bytes kept of its standard error; more are thrown away.
    pub errors: usize,
    /// How long it may take.
    pub deadline: Duration,
    /// Readable once the question is withdrawn.
    pub withdrawn: Option<BorrowedFd<'a>>,
}

/// The result of a program that exited by itself in time.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The exit status.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// The beginning of what it wrote to standard error.
    pub errors: Vec<u8>,
}

/// An approver that runs a program for each question.
///
/// Use it where a script or a service decides. The program reads one request as JSON from standard input and writes one
/// decision to standard output: `{"approved": true}`, with `note` and `remember` if it likes. The format of both is in
/// `docs/calls.md`. It runs unconfined, as the user. A nonzero exit code, a decision that cannot be read, and the
/// deadline all deny. A session whose commands may write the program does not open.
///
/// ```no_run
/// use std::path::{Path, PathBuf};
/// use std::time::Duration;
///
/// use stockade::ProgramApprover;
///
/// let approver = ProgramApprover::new(Path::new("/usr/local/bin/approve"))?
///     .with_timeout(Duration::from_secs(60))
///     .reporting(|line| eprintln!("approver: {line}"));
/// # Ok::<(), stockade::ApproverError>(())
/// ```
pub struct ProgramApprover {
    /// As it was named.
    named: PathBuf,
    program: AbsPath,
    identity: Identity,
    environment: Vec<(OsString, OsString)>,
    deadline: Duration,
    run: RunProgram,
    report: fn(&str),
    cancelled: Option<Cancelled>,
}

impl ProgramApprover {
    /// An approver that runs `program`, without arguments, and waits `deadline` for each answer.
    ///
    /// `writable` are the roots that commands may write. `run` starts the program and waits for it. `report` receives the
    /// standard error of the program, line by line and safe to print.
    ///
    /// # Errors
    /// [`ApproverError::Program`]: the program does not exist or cannot be executed, lies in a writable root, or can be
    /// written by another user than this one and root.
    pub(crate) fn run_by(
        run: RunProgram,
        program: &Path,
        writable: &[AbsPath],
        deadline: Duration,
        report: fn(&str),
    ) -> Result<Self, ApproverError> {
        let (named, (program, identity)) = (program, resolved(program, writable)?);
        Ok(Self {
            named: named.to_owned(),
            program,
            identity,
            environment: environment(writable),
            deadline,
            run,
            report,
            cancelled: None,
        })
    }

    /// Denies a question that the program does not answer within `timeout`. The default is five minutes.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            deadline: timeout,
            ..self
        }
    }

    /// Gives `report` the standard error of the program, line by line and safe to print. The default drops it.
    #[must_use]
    pub fn reporting(self, report: fn(&str)) -> Self {
        Self { report, ..self }
    }

    /// The same approver, with a handle that withdraws its questions from another thread.
    ///
    /// # Errors
    /// No pipe can be made for the handle (pipe(2)).
    pub fn cancellable(self) -> std::io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        let approver = Self {
            cancelled: Some(cancelled),
            ..self
        };
        Ok((approver, handle))
    }

    fn check_unchanged(&self) -> Result<(), ApproverError> {
        match std::fs::symlink_metadata(&self.program) {
            Ok(found) if identity(&found) == self.identity => Ok(()),
            Ok(_) => Err("it is not the file any more that it was when the session began".to_owned()),
            Err(error) => Err(error.to_string()),
        }
        .map_err(|why| unusable(self.program.as_path(), why))
    }
}

impl Approver for ProgramApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        self.check_unchanged()?;
        let input = RequestMessage::of(request, presentation).json()?;
        let result = (self.run)(&ProgramRun {
            program: self.program.as_path(),
            environment: &self.environment,
            input: &input,
            output: MAX_DECISION,
            errors: MAX_ERRORS,
            deadline: self.deadline,
            withdrawn: self.cancelled.as_ref().map(|cancelled| cancelled.as_fd()),
        })?;
        for line in result
            .errors
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            (self.report)(&path::escape(line));
        }
        if !result.status.success() {
            return Err(ApproverError::NoDecision(format!(
                "the approver program ended with {}",
                result.status
            )));
        }
        let decision = decision_message::parse(&result.output).map_err(ApproverError::NoDecision)?;
        // An answer that arrives with the withdrawal is too late.
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        Ok(decision)
    }

    fn begin(&mut self, writable: &[PathBuf]) -> Result<(), ApproverError> {
        let roots = writable.iter().map(AbsPath::new).collect::<Result<Vec<_>, _>>();
        let roots = roots.map_err(|error| unusable(&self.named, error.to_string()))?;
        (self.program, self.identity) = resolved(&self.named, &roots)?;
        self.environment = environment(&roots);
        Ok(())
    }
}

fn unusable(program: &Path, why: String) -> ApproverError {
    ApproverError::Program {
        program: program.to_owned(),
        why,
    }
}

fn resolved(program: &Path, writable: &[AbsPath]) -> Result<(AbsPath, Identity), ApproverError> {
    resolve_program(program, writable).map_err(|why| unusable(program, why))
}

/// The real path of the program, if only the user and root can change it.
fn resolve_program(program: &Path, writable: &[AbsPath]) -> Result<(AbsPath, Identity), String> {
    let absolute = std::path::absolute(program).map_err(|error| error.to_string())?;
    let resolved = walk(&absolute).map_err(|error| error.to_string())?;
    let found = resolved.found.as_ref().ok_or("there is no such file")?;
    let named = AbsPath::new(&absolute).unwrap_or_else(|_| resolved.path.clone());
    for path in resolved.links.iter().chain([&resolved.path]) {
        if let Some(root) = writable.iter().find(|root| holds(root, path)) {
            return Err(format!(
                "{path} lies in {root}, which commands may write: they could approve themselves"
            ));
        }
    }
    let guards = OwnerCheck {
        owners: vec![0, geteuid().as_raw()],
        from: AbsPath::root(),
    };
    if let Some(why) = guards.objection(&named, &resolved) {
        return Err(why);
    }
    access(resolved.path.as_path(), AccessFlags::X_OK).map_err(|errno| format!("it cannot be executed: {errno}"))?;
    Ok((resolved.path.clone(), identity(found)))
}

/// The environment, without directories in which a command could plant something to run: entries of `PATH`, and a `HOME`
/// with start-up files.
fn environment(writable: &[AbsPath]) -> Vec<(OsString, OsString)> {
    let is_writable = |path: &OsStr| {
        let Ok(path) = AbsPath::new(Path::new(path)) else {
            return true;
        };
        let real = walk(path.as_path()).map_or_else(|_| path.clone(), |resolved| resolved.path);
        writable.iter().any(|root| holds(root, &path) || holds(root, &real))
    };
    let value = |name: &str| {
        let value = std::env::var_os(name)?;
        match name {
            "PATH" => {
                let entries = value.as_bytes().split(|byte| *byte == b':');
                let kept: Vec<&[u8]> = entries.filter(|entry| !is_writable(OsStr::from_bytes(entry))).collect();
                Some(OsString::from_vec(kept.join(&b':')))
            }
            "HOME" if is_writable(&value) => None,
            _ => Some(value),
        }
    };
    ENVIRONMENT
        .into_iter()
        .filter_map(|name| Some((OsString::from(name), value(name)?)))
        .collect()
}

impl fmt::Debug for ProgramApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramApprover")
            .field("program", &self.program)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "a run that never fails")]
    fn yes(_: &ProgramRun<'_>) -> Result<ProgramOutput, ApproverError> {
        Ok(ProgramOutput {
            status: ExitStatus::from_raw(0),
            output: b"{\"approved\": true}".to_vec(),
            errors: Vec::new(),
        })
    }

    #[test]
    fn a_program_that_was_replaced_is_not_asked() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let program = write("approver");
        let time = Duration::from_secs(1);
        let mut approver = ProgramApprover::run_by(yes, &program, &[], time, |_| {}).unwrap();
        let shown = Presentation::Text("make".to_owned());
        assert!(
            approver
                .ask(&ApprovalRequest::new("shell", "run a command"), &shown)
                .unwrap()
                .approved
        );
        std::fs::rename(write("other"), &program).unwrap();
        let refused = approver
            .ask(&ApprovalRequest::new("shell", "run a command"), &shown)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("not the file any more"), "{refused}");
        std::fs::remove_file(&program).unwrap();
        assert!(
            approver
                .ask(&ApprovalRequest::new("shell", "run a command"), &shown)
                .is_err()
        );
    }

    #[test]
    fn a_withdrawn_question_is_not_asked() {
        let (program, time) = (Path::new("/bin/sh"), Duration::from_secs(1));
        let approver = ProgramApprover::run_by(yes, program, &[], time, |_| {}).unwrap();
        let (mut approver, handle) = approver.cancellable().unwrap();
        let shown = Presentation::Text("make".to_owned());
        assert!(
            approver
                .ask(&ApprovalRequest::new("shell", "run a command"), &shown)
                .unwrap()
                .approved
        );
        handle.cancel();
        assert!(matches!(
            approver.ask(&ApprovalRequest::new("shell", "run a command"), &shown),
            Err(ApproverError::Cancelled)
        ));
    }
}
