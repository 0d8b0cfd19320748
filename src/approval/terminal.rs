//! Asks the person at the controlling terminal.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use super::approver::{Approver, ApproverError};
use super::cancel::{CancelHandle, Cancelled};
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Presentation, Remember};
use super::screen::{self, Colour, Extent};
use super::tty::Tty;

/// How often an answer that is not understood is asked for again.
const REPEATS: usize = 2;

/// Asks on `/dev/tty`, whatever standard input and output are.
///
/// Input typed before a question stands on the screen is thrown away. Ctrl-C, Ctrl-\ and Ctrl-D
/// are errors, and errors deny. Without a terminal, or in the background, it fails at once.
///
/// It blocks the thread that asks; a [`CancelHandle`] ends that from another.
pub struct TerminalApprover {
    columns: fn(BorrowedFd<'_>) -> Option<u16>,
    timeout: Option<Duration>,
    cancelled: Option<Cancelled>,
    colour: Colour,
    reset: Reset,
}

/// Whether the terminal understands the sequences that undo what earlier output did to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    Dumb,
    Ansi,
}

impl TerminalApprover {
    /// An approver without a timeout; `columns` tells the width of the terminal, if it is known.
    ///
    /// Colours are used unless `NO_COLOR` is set or `TERM` is `dumb`.
    pub fn new(columns: fn(BorrowedFd<'_>) -> Option<u16>) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            columns,
            timeout: None,
            cancelled: None,
            colour: if dumb || no_colour { Colour::Off } else { Colour::On },
            reset: if dumb { Reset::Dumb } else { Reset::Ansi },
        }
    }

    /// Denies a question that is not answered within `timeout`.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// With a handle that withdraws its questions from another thread; fails if there is no pipe for it.
    ///
    /// A second call leaves the first handle without effect.
    pub fn cancellable(self) -> io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        let approver = Self {
            cancelled: Some(cancelled),
            ..self
        };
        Ok((approver, handle))
    }
}

/// Undoes what output of an earlier command may have left: a soft reset; margins, origin mode (both move the cursor, which
/// is put back), insert mode, lines that do not wrap; colours and character sets; a changed palette and ground.
const RESET: &str = "\x1b[!p\x1b7\x1b[?69l\x1b[r\x1b[?6l\x1b8\x1b[4l\x1b[?7h\x1b[0m\x1b(B\x0f\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\r\n";

impl Approver for TerminalApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let mut tty = Tty::open(self.timeout, self.cancelled.as_ref())?;
        let columns = (self.columns)(tty.as_fd())
            .filter(|columns| *columns > 0)
            .unwrap_or(screen::NARROW);
        let start = match self.reset {
            Reset::Ansi => RESET,
            Reset::Dumb => "\r\n",
        };
        tty.write(start)?;
        let look = (columns, self.colour);
        let mut question = screen::question(request, presentation, look, Extent::Head);
        tty.write(&question.text)?;
        let mut tries = 0..=REPEATS;
        while tries.next().is_some() {
            tty.flush()?;
            tty.write(screen::prompt(request, &question))?;
            let answer = tty.line().inspect_err(|_| {
                // The cursor stands behind the prompt; a terminal that is gone needs no new line.
                let _gone = tty.write("\n");
            })?;
            match answer.as_slice() {
                // Nobody says yes to what was not shown.
                b"y" | b"yes" if screen::must_be_seen(request, &question) => {
                    tty.write("Please type v and see all of it first.\n")?;
                }
                b"y" | b"yes" => return Ok(decision(true, Remember::None)),
                b"n" | b"no" => return Ok(decision(false, Remember::None)),
                b"s" if request.answer == AnswerOf::Anyone => return Ok(decision(true, Remember::Session)),
                b"v" if question.is_cut => {
                    question = screen::question(request, presentation, look, Extent::Whole);
                    tty.write(&question.text)?;
                    tries = 0..=REPEATS;
                }
                _ => tty.write(match (request.answer, question.is_cut) {
                    (AnswerOf::Anyone, _) => "Please type y, n or s.\n",
                    (AnswerOf::ApproverOnly, false) => "Please type y or n.\n",
                    (AnswerOf::ApproverOnly, true) => "Please type v or n.\n",
                })?,
            }
        }
        Err(ApproverError::Unreadable)
    }
}

const fn decision(approved: bool, remember: Remember) -> ApprovalDecision {
    ApprovalDecision {
        approved,
        note: None,
        remember,
    }
}

impl fmt::Debug for TerminalApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalApprover")
            .field("timeout", &self.timeout)
            .field("colour", &self.colour)
            .finish_non_exhaustive()
    }
}
