//! What came of a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::denied_names::DeniedNames;
use super::explain::Explained;
use super::network::NetworkUse;
use super::new_files::NewFiles;
use super::restored::Changed;
use crate::confine::{ConfineError, End, LimitKind};
use crate::policy::path::escape;

/// The end and the output of a command, as `stockade run --json` prints it.
///
/// The tool `shell` and the tools of `custom_tools` return it as [`Output::data`](crate::Output::data), in JSON. The members have
/// the names of these fields. `status` is `exited` (with `code`), `signaled` or `cancelled` (with `signal`), `timed_out`,
/// `over_limit` (with `limit`), `not_found` (with `program`), `not_executable` or `failed` (with `why`). Exit codes and
/// signals are those of wait(2) and signal(7).
///
/// ```no_run
/// # async fn run(session: &stockade::Session) -> Result<(), stockade::ToolError> {
/// let output = session.tools().call("shell", serde_json::json!({"command": "make"})).await?;
/// let (status, seconds) = (&output.data["status"], &output.data["duration"]);
/// println!("{status} after {seconds} s: {}", output.data["stderr"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Outcome {
    /// How it ended.
    #[serde(flatten)]
    pub status: Status,
    /// The regime that confined it: `namespaces`, `landlock` or `none`.
    pub regime: String,
    /// The time it took without the time for approval; in JSON a number of seconds.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub duration: Duration,
    /// Bytes written to standard output and error, kept or not.
    pub output_bytes: u64,
    /// Those of the bytes that the reader of the stream had not taken when the call ended; 0 where nothing is streamed.
    #[serde(skip)]
    pub undelivered_bytes: u64,
    /// The kept part of standard output, its head and its tail; empty where it was streamed.
    pub stdout: String,
    /// The kept part of standard error, its head and its tail; empty where it was streamed.
    pub stderr: String,
    /// Protected names that the command changed.
    #[serde(flatten)]
    pub changed: Changed,
    /// New files that programs of the host may read or run.
    #[serde(flatten)]
    pub new_files: NewFiles,
    /// New names that a deny matches; later commands cannot use them.
    #[serde(flatten)]
    pub denied: DeniedNames,
    /// Why protected names could not be restored; null where they could.
    pub unsettled: Option<String>,
    /// The hosts it tried to reach; absent where the network is no list of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// What was denied to it, and why; absent where denials are not explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
    /// The user's git settings that did not apply and would have mattered; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// How to find out what was denied; absent where the config turns hints off, or nothing looks like a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// The command ended by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal killed it.
    Signaled {
        /// Which.
        signal: i32,
    },
    /// It ran out of time; its tree was killed.
    TimedOut,
    /// It was cancelled; its tree was killed.
    Cancelled {
        /// The signal that Stockade was stopped with; 9 when it was not a signal.
        signal: i32,
    },
    /// Its tree went over a limit and was killed.
    OverLimit {
        /// Which.
        limit: String,
    },
    /// The program does not exist in the command's world.
    NotFound {
        /// Which program.
        program: String,
    },
    /// The program exists and may not be executed.
    NotExecutable {
        /// Which program, and the system's word.
        why: String,
    },
    /// Confinement failed on the way; nothing ran, or it was killed.
    Failed {
        /// Why.
        why: String,
    },
}

impl Status {
    /// The status of a command that ended so.
    ///
    /// `stopped` is the signal it was cancelled with, if it was.
    pub fn of(end: End, stopped: Option<i32>) -> Self {
        use crate::confine::Step;
        use nix::errno::Errno;
        match end {
            End::Exited(code) => Self::Exited { code },
            End::Signaled(signal) => Self::Signaled { signal },
            End::TimedOut => Self::TimedOut,
            End::Cancelled => Self::Cancelled {
                signal: stopped.unwrap_or(9),
            },
            End::OverLimit(LimitKind::Memory) => Self::OverLimit {
                limit: "memory".to_owned(),
            },
            End::OverLimit(LimitKind::Processes) => Self::OverLimit {
                limit: "processes".to_owned(),
            },
            End::Unbounded => Self::Failed {
                why: "the bounds of the command's control group were taken away while it ran, and everything it started was \
                      killed; whoever manages control groups does so to one that it did not delegate (systemd: `Delegate=yes`)"
                    .to_owned(),
            },
            End::Lost => Self::Failed {
                why: "the process that watched the command was killed; every process of the session was killed with it"
                    .to_owned(),
            },
            End::Aborted(failure) => Self::Failed {
                why: ConfineError::Step(failure).to_string(),
            },
            End::NotStarted(failure) => match (failure.step, Errno::from_raw(failure.errno)) {
                (Step::Execute, Errno::ENOENT | Errno::ENOTDIR) => Self::NotFound {
                    program: escape(failure.detail.as_bytes()),
                },
                (Step::Execute, errno) => Self::NotExecutable {
                    why: format!("{}: {}", escape(failure.detail.as_bytes()), errno.desc()),
                },
                _ => Self::Failed {
                    why: failure.to_string(),
                },
            },
        }
    }
}

impl Outcome {
    /// What is to be said of how it ended; nothing of a command that ended as it should.
    pub(super) fn message(&self) -> Option<String> {
        match &self.status {
            Status::TimedOut => Some(format!(
                "timed out after {:.1} s; it was killed",
                self.duration.as_secs_f64()
            )),
            status => status.message(),
        }
    }
}

impl Status {
    /// What is to be said of it; nothing of a command that ended as it should.
    pub(super) fn message(&self) -> Option<String> {
        Some(match self {
            Self::Exited { code: 0 } => return None,
            Self::Exited { code } => format!("exit code {code}"),
            Self::Signaled { signal } => format!("killed by signal {signal}"),
            Self::TimedOut => "timed out; it was killed".to_owned(),
            Self::Cancelled { signal } => format!("cancelled by signal {signal}"),
            Self::OverLimit { limit } => format!("over the limit `{limit}`; it was killed"),
            Self::NotFound { program } => not_found(program),
            Self::NotExecutable { why } | Self::Failed { why } => why.clone(),
        })
    }
}

/// Captured output as text; bytes that are not UTF-8 are replaced, because JSON has no others.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        error
            .into_bytes()
            .utf8_chunks()
            .flat_map(|chunk| [chunk.valid(), if chunk.invalid().is_empty() { "" } else { "\u{fffd}" }])
            .collect()
    })
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// What is said of a program that execve(2) did not find. A script is not found either where its interpreter is not.
pub fn not_found(program: &str) -> String {
    if program.contains('/') {
        format!("{program}: not found in the sandbox, or what its first line names is not")
    } else {
        format!("{program}: not found in the PATH of the sandbox")
    }
}

#[cfg(test)]
mod tests {
    use super::super::escape_truncated::MOST_SHOWN;
    use super::super::restored::Restored;
    use super::*;
    use crate::confine::wire::protocol::Violation;
    use crate::confine::{StartFailure, Step};

    #[test]
    fn nothing_a_child_says_reaches_a_terminal_unescaped() {
        let evil = "\u{1b}[2J\u{202e}x";
        let said = |step| {
            End::NotStarted(StartFailure {
                step,
                errno: 2,
                detail: evil.to_owned(),
            })
        };
        let violation = Violation {
            path: evil.into(),
            what: evil.to_owned(),
            quarantined: Some(evil.into()),
            settings: vec![evil.into()],
            more_settings: 0,
            is_other_in_head: true,
            failed: Some(evil.to_owned()),
        };
        let shown = serde_json::to_string(&Restored::from(violation)).unwrap();
        let statuses =
            [Step::Execute, Step::Fork].map(|step| serde_json::to_string(&Status::of(said(step), None)).unwrap());
        for text in std::iter::once(shown).chain(statuses) {
            assert!(
                text.contains("u{1b}[2J") && !text.contains(['\u{1b}', '\u{202e}']) && !text.contains("u001b"),
                "{text}"
            );
        }
    }

    #[test]
    fn of_what_is_very_long_the_beginning_is_shown_and_its_length() {
        let long = |letter: &str| letter.repeat(40_000 / letter.len());
        let violation = |path: String| Violation {
            path: path.clone().into(),
            what: "linked".to_owned(),
            quarantined: Some(path.clone().into()),
            settings: vec![path.into_bytes()],
            more_settings: 0,
            is_other_in_head: false,
            failed: None,
        };
        for letter in ["a", "ä", "\u{1b}"] {
            let restored = Restored::from(violation(long(letter)));
            for text in [
                Some(&restored.path),
                restored.quarantined.as_ref(),
                restored.settings.first(),
            ] {
                let text = text.unwrap();
                assert!(text.len() <= 6 * MOST_SHOWN + 40, "{}", text.len());
                assert!(text.ends_with("… (40000 bytes)"), "{text}");
                assert!(!text.contains('\u{fffd}') && !text.contains("\\x"), "{text}");
            }
        }
        let short = Restored::from(violation("/a".to_owned()));
        assert_eq!(
            (short.path.as_str(), short.settings.as_slice()),
            ("/a", ["/a".to_owned()].as_slice())
        );
    }
}
