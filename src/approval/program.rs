//! Asks a program that the user chose: the question on its standard input, the decision on its standard output.
//!
//! The program runs outside every confinement, as the user. So it must lie where no command can write, it is found
//! once, and what it finds on its `PATH` is not the agent's either. Whatever it does but answer denies.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use nix::unistd::{AccessFlags, access, geteuid};

use super::approver::{Approver, ApproverError};
use super::asked::Asked;
use super::cancel::{CancelHandle, Cancelled};
use super::replied;
use super::request::{ApprovalDecision, ApprovalRequest, Presentation};
use crate::config::{OwnerCheck, holds, walk};
use crate::policy::{AbsPath, Identity, path};

/// The most bytes of a decision.
const LARGEST: usize = 64 * 1024;
/// The most bytes of what it writes to standard error that are passed on.
const LONGEST: usize = 4 * 1024;
/// The variables it gets, if they are set.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TERM"];

/// How a program is started and waited for, and everything that it left in its process group killed. What knows
/// how stands above this floor.
pub type RunProgram = fn(&Asking<'_>) -> Result<Answered, ApproverError>;

/// One run of an approver program.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
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

/// What an approver program did, when it ended by itself in time.
#[derive(Debug)]
pub struct Answered {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// The beginning of what it wrote to standard error.
    pub errors: Vec<u8>,
}

/// Asks a program.
pub struct ProgramApprover {
    program: AbsPath,
    identity: Identity,
    environment: Vec<(OsString, OsString)>,
    deadline: Duration,
    run: RunProgram,
    tell: fn(&str),
    cancelled: Option<Cancelled>,
}

impl ProgramApprover {
    /// An approver that runs `program` for each question and denies what it has not answered by `deadline`.
    ///
    /// Refused where the program lies in one of the `writable` roots, or somebody else could write it. `tell` is
    /// given what it writes to standard error, line by line and safe to print.
    pub fn new(
        program: &Path,
        writable: &[AbsPath],
        deadline: Duration,
        run: RunProgram,
        tell: fn(&str),
    ) -> Result<Self, ApproverError> {
        let (program, identity) = usable(program, writable).map_err(|why| ApproverError::Program {
            program: program.to_owned(),
            why,
        })?;
        Ok(Self {
            program,
            identity,
            environment: environment(writable),
            deadline,
            run,
            tell,
            cancelled: None,
        })
    }

    /// With a handle that withdraws its questions from another thread; fails if there is no pipe for it.
    pub fn cancellable(self) -> std::io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        let approver = Self {
            cancelled: Some(cancelled),
            ..self
        };
        Ok((approver, handle))
    }

    fn still_there(&self) -> Result<(), ApproverError> {
        match std::fs::symlink_metadata(&self.program) {
            Ok(found) if identity(&found) == self.identity => Ok(()),
            Ok(_) => Err("it is not the file any more that it was when the session began".to_owned()),
            Err(error) => Err(error.to_string()),
        }
        .map_err(|why| ApproverError::Program {
            program: self.program.as_path().to_owned(),
            why,
        })
    }
}

impl Approver for ProgramApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        self.still_there()?;
        let input = Asked::of(request, presentation).json()?;
        let answered = (self.run)(&Asking {
            program: self.program.as_path(),
            environment: &self.environment,
            input: &input,
            output: LARGEST,
            errors: LONGEST,
            deadline: self.deadline,
            withdrawn: self.cancelled.as_ref().map(|cancelled| cancelled.as_fd()),
        })?;
        for line in answered
            .errors
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            (self.tell)(&path::escape(line));
        }
        if !answered.status.success() {
            return Err(ApproverError::NoDecision(format!(
                "the approver program ended with {}",
                answered.status
            )));
        }
        let decision = replied::parse(&answered.output).map_err(ApproverError::NoDecision)?;
        // An answer that comes together with the withdrawal is too late.
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        Ok(decision)
    }
}

/// Where the program really is, if nobody but the user and root decides what it does.
fn usable(program: &Path, writable: &[AbsPath]) -> Result<(AbsPath, Identity), String> {
    let whole = std::path::absolute(program).map_err(|error| error.to_string())?;
    let walked = walk(&whole).map_err(|error| error.to_string())?;
    let found = walked.found.as_ref().ok_or("there is no such file")?;
    let named = AbsPath::new(&whole).unwrap_or_else(|_| walked.path.clone());
    for place in walked.links.iter().chain([&walked.path]) {
        if let Some(root) = writable.iter().find(|root| holds(root, place)) {
            return Err(format!(
                "{place} lies in {root}, which commands may write: they could approve themselves"
            ));
        }
    }
    let guards = OwnerCheck {
        owners: vec![0, geteuid().as_raw()],
        from: AbsPath::root(),
    };
    if let Some(why) = guards.objection(&named, &walked) {
        return Err(why);
    }
    access(walked.path.as_path(), AccessFlags::X_OK).map_err(|errno| format!("it cannot be executed: {errno}"))?;
    Ok((walked.path.clone(), identity(found)))
}

fn identity(found: &std::fs::Metadata) -> Identity {
    Identity {
        device: found.dev(),
        inode: found.ino(),
    }
}

/// The variables, without those places from which a command could give the program something to run: entries of
/// `PATH`, and a `HOME` with start-up files in it.
fn environment(writable: &[AbsPath]) -> Vec<(OsString, OsString)> {
    let reached = |place: &OsStr| {
        let Ok(place) = AbsPath::new(Path::new(place)) else {
            return true;
        };
        let real = walk(place.as_path()).map_or_else(|_| place.clone(), |walked| walked.path);
        writable.iter().any(|root| holds(root, &place) || holds(root, &real))
    };
    let value = |name: &str| {
        let value = std::env::var_os(name)?;
        match name {
            "PATH" => {
                let entries = value.as_bytes().split(|byte| *byte == b':');
                let kept: Vec<&[u8]> = entries.filter(|entry| !reached(OsStr::from_bytes(entry))).collect();
                Some(OsString::from_vec(kept.join(&b':')))
            }
            "HOME" if reached(&value) => None,
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
    use crate::approval::{AnswerOf, Lazy, Remember};

    fn request() -> ApprovalRequest {
        ApprovalRequest {
            required: true,
            answer: AnswerOf::Anyone,
            tool_name: "shell".to_owned(),
            description: "run a command".to_owned(),
            payload: Vec::new(),
            presentation: Lazy::new(|| Err(String::new())),
            group_id: None,
            remember: Remember::None,
            allowed_by: String::new(),
            why: Vec::new(),
            caller: None,
            call: None,
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "a run that never fails")]
    fn yes(_: &Asking<'_>) -> Result<Answered, ApproverError> {
        Ok(Answered {
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
        let mut approver = ProgramApprover::new(&program, &[], time, yes, |_| {}).unwrap();
        let shown = Presentation::Text("make".to_owned());
        assert!(approver.ask(&request(), &shown).unwrap().approved);
        std::fs::rename(write("other"), &program).unwrap();
        let refused = approver.ask(&request(), &shown).unwrap_err().to_string();
        assert!(refused.contains("not the file any more"), "{refused}");
        std::fs::remove_file(&program).unwrap();
        assert!(approver.ask(&request(), &shown).is_err());
    }

    #[test]
    fn a_withdrawn_question_is_not_asked() {
        let (program, time) = (Path::new("/bin/sh"), Duration::from_secs(1));
        let approver = ProgramApprover::new(program, &[], time, yes, |_| {}).unwrap();
        let (mut approver, handle) = approver.cancellable().unwrap();
        let shown = Presentation::Text("make".to_owned());
        assert!(approver.ask(&request(), &shown).unwrap().approved);
        handle.cancel();
        assert!(matches!(
            approver.ask(&request(), &shown),
            Err(ApproverError::Cancelled)
        ));
    }
}
