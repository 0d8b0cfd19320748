//! Asks the person at the controlling terminal.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use super::answer::{Answer, Reason, answer, reason};
use super::approver::{Approver, ApproverError};
use super::cancel::{CancelHandle, Cancelled};
use super::pager::{Paper, Reached, leaf};
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Presentation, Remember};
use super::screen::{self, Colour, Letters, Look, Rest};
use super::tty::Tty;
use crate::policy::Channel;

/// How often an answer that is not understood is asked for again.
const REPEATS: usize = 2;

/// Asks on `/dev/tty`, whatever standard input and output are.
///
/// Input typed before a question stands on the screen is thrown away. Ctrl-C, Ctrl-\ and Ctrl-D
/// are errors, and errors deny. Without a terminal, or in the background, it fails at once. While another
/// question is open on the same terminal, of whatever process, it waits for its turn.
///
/// It blocks the thread that asks; a [`CancelHandle`] ends that from another.
pub struct TerminalApprover {
    size: fn(BorrowedFd<'_>) -> Option<(u16, u16)>,
    timeout: Option<Duration>,
    quiet: Option<Duration>,
    cancelled: Option<Cancelled>,
    colour: Colour,
    letters: Letters,
    reset: Reset,
}

/// Whether the terminal understands the sequences that undo what earlier output did to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    Dumb,
    Ansi,
}

impl TerminalApprover {
    /// An approver without a timeout; `size` tells the columns and rows of the terminal, if they are known.
    ///
    /// Colours are used unless `NO_COLOR` is set or `TERM` is `dumb`; letters beyond ASCII where the locale, or
    /// the terminal itself, says that they are understood.
    pub fn new(size: fn(BorrowedFd<'_>) -> Option<(u16, u16)>) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            size,
            timeout: None,
            quiet: None,
            cancelled: None,
            colour: if dumb || no_colour { Colour::Off } else { Colour::On },
            letters: Letters::of_locale(|name| std::env::var_os(name)),
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

    /// Takes answers only when nothing was typed for so long after the question stood on the screen: for questions that come
    /// up while a person types for something else.
    #[must_use]
    pub fn after_quiet(self, quiet: Duration) -> Self {
        Self {
            quiet: Some(quiet),
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
        tty.write(match self.reset {
            Reset::Ansi => RESET,
            Reset::Dumb => "\r\n",
        })?;
        let mut rest = self.show(&mut tty, request, presentation, Rest::Unseen)?;
        if let Some(quiet) = self.quiet {
            tty.wait_for_quiet(quiet)?;
        }
        let mut tries = 0..=REPEATS;
        while tries.next().is_some() {
            tty.flush()?;
            tty.write(&screen::prompt(request, rest))?;
            let line = tty.line().inspect_err(|_| {
                // The cursor stands behind the prompt; a terminal that is gone needs no new line.
                let _gone = tty.write("\n");
            })?;
            match answer(&line) {
                // Nobody says yes to what was not shown.
                Answer::Yes | Answer::Session if rest == Rest::Unseen => tty.write(screen::SEE_FIRST)?,
                Answer::Yes => return Ok(yes(Remember::None)),
                Answer::Session if request.answer == AnswerOf::Anyone => return Ok(yes(Remember::Session)),
                Answer::No(Reason::Given(note)) => return Ok(no(Some(note))),
                Answer::No(Reason::ToBeAsked) => return Ok(no(ask_why_not(&mut tty)?)),
                Answer::View if rest != Rest::Nothing => {
                    let seen = self.leaf(&mut tty, request, presentation, rest)?;
                    rest = self.show(&mut tty, request, presentation, seen)?;
                    tries = 0..=REPEATS;
                }
                Answer::Why => {
                    let text = screen::why(request, self.look(&tty), rest);
                    tty.write(&text)?;
                    tries = 0..=REPEATS;
                }
                Answer::Session | Answer::View | Answer::NotUnderstood => tty.write(&screen::please(request, rest))?,
            }
        }
        Err(ApproverError::Unreadable)
    }

    fn channel(&self) -> Channel {
        Channel::Terminal
    }
}

impl TerminalApprover {
    /// Anew each time: the window may have been resized.
    fn look(&self, tty: &Tty<'_>) -> Look {
        let letters = match self.letters {
            Letters::Ascii if tty.knows_unicode() => Letters::Unicode,
            known @ (Letters::Ascii | Letters::Unicode) => known,
        };
        Look::new((self.size)(tty.as_fd()), self.colour, letters)
    }

    fn show(
        &self,
        tty: &mut Tty<'_>,
        request: &ApprovalRequest,
        presentation: &Presentation,
        rest: Rest,
    ) -> Result<Rest, ApproverError> {
        let question = screen::question(request, presentation, self.look(tty), rest);
        tty.write(&question.text)?;
        Ok(question.rest)
    }

    fn leaf(
        &self,
        tty: &mut Tty<'_>,
        request: &ApprovalRequest,
        presentation: &Presentation,
        rest: Rest,
    ) -> Result<Rest, ApproverError> {
        let paper = match self.reset {
            Reset::Ansi => Paper::Sheet,
            Reset::Dumb => Paper::Roll,
        };
        let lines = |look| screen::whole(request, presentation, look);
        match leaf(tty, paper, |tty| self.look(tty), lines)? {
            Reached::TheEnd => Ok(Rest::Seen),
            Reached::NotTheEnd => Ok(rest),
        }
    }
}

/// The answer is no already: without a reason, it is no without a reason.
fn ask_why_not(tty: &mut Tty<'_>) -> Result<Option<String>, ApproverError> {
    tty.write(screen::REASON)?;
    match tty.line() {
        Ok(line) => Ok(reason(&line)),
        Err(ApproverError::Cancelled) => Err(ApproverError::Cancelled),
        Err(
            ApproverError::NoTerminal(_)
            | ApproverError::Background
            | ApproverError::Terminal { .. }
            | ApproverError::EndOfInput
            | ApproverError::Interrupted
            | ApproverError::TimedOut(_)
            | ApproverError::Busy(_)
            | ApproverError::Unreadable
            | ApproverError::TooLarge
            | ApproverError::Program { .. }
            | ApproverError::Socket { .. }
            | ApproverError::Deferred
            | ApproverError::Nobody(_)
            | ApproverError::NoDecision(_),
        ) => {
            let _gone = tty.write("\n");
            Ok(None)
        }
    }
}

const fn yes(remember: Remember) -> ApprovalDecision {
    ApprovalDecision {
        approved: true,
        note: None,
        remember,
    }
}

const fn no(note: Option<String>) -> ApprovalDecision {
    ApprovalDecision {
        approved: false,
        note,
        remember: Remember::None,
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
