//! Asks the person at the controlling terminal.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use super::answer::{Reason, TypedAnswer, parse, reason};
use super::approver::{Approver, ApproverError};
use super::cancel::{CancelHandle, Cancelled};
use super::pager::{PageStyle, Reached, page_through};
use super::presentation::Presentation;
use super::request::{ApprovalDecision, ApprovalRequest};
use super::scope::Remember;
use super::screen::{self, Charset, Colour, Layout, Overflow};
use super::tty::{Input, Tty};
use super::verdict::{no, yes};
use crate::policy::Channel;

/// The most keys for one question. Who presses more has no answer.
const MAX_KEYS: usize = 100;
/// How long nothing may be typed before a key counts: whoever types as the question comes up does not answer it.
const QUIET: Duration = Duration::from_millis(300);

/// An approver that asks the person at the controlling terminal. One key answers.
///
/// It opens `/dev/tty` (tty(4)), whatever standard input and output are. Input that was typed before the question is shown
/// is thrown away. Ctrl-C, Ctrl-\ and Ctrl-D deny. Without a terminal, or in the background, it fails at once. While
/// another process of Stockade asks on the same terminal, it waits for its turn.
///
/// It blocks the thread that asks. A [`CancelHandle`] ends that from another thread.
///
/// ```
/// use std::time::Duration;
///
/// use stockade::TerminalApprover;
///
/// let approver = TerminalApprover::new().with_timeout(Duration::from_secs(120));
/// ```
pub struct TerminalApprover {
    size: fn(BorrowedFd<'_>) -> Option<(u16, u16)>,
    timeout: Option<Duration>,
    quiet: Duration,
    cancelled: Option<Cancelled>,
    colour: Colour,
    charset: Charset,
    sequences: Sequences,
}

/// Whether the terminal understands escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequences {
    Dumb,
    Ansi,
}

impl TerminalApprover {
    /// An approver without a timeout. `size` returns the columns and rows of the terminal.
    pub(crate) fn sized_by(size: fn(BorrowedFd<'_>) -> Option<(u16, u16)>) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            size,
            timeout: None,
            quiet: QUIET,
            cancelled: None,
            colour: if dumb || no_colour { Colour::Off } else { Colour::On },
            charset: Charset::of_locale(|name| std::env::var_os(name)),
            sequences: if dumb { Sequences::Dumb } else { Sequences::Ansi },
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

    /// Takes no answer before nothing was typed for `quiet`. Use it for questions that come up while a person types
    /// something else.
    #[must_use]
    pub fn with_quiet_period(self, quiet: Duration) -> Self {
        Self { quiet, ..self }
    }

    /// The same approver, with a handle that withdraws its questions from another thread.
    ///
    /// A second call leaves the first handle without effect.
    ///
    /// # Errors
    /// No pipe can be made for the handle (pipe(2)).
    pub fn cancellable(self) -> io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        let approver = Self {
            cancelled: Some(cancelled),
            ..self
        };
        Ok((approver, handle))
    }
}

/// Undoes the effects of earlier output: a soft reset; margins, origin mode (both move the cursor, which
/// is put back), insert mode, lines that do not wrap; colours and character sets; a changed palette and ground.
const RESET: &str = "\x1b[!p\x1b7\x1b[?69l\x1b[r\x1b[?6l\x1b8\x1b[4l\x1b[?7h\x1b[0m\x1b(B\x0f\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\r\n";

impl Approver for TerminalApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let mut tty = Tty::open(self.timeout, self.cancelled.as_ref())?;
        tty.write(match self.sequences {
            Sequences::Ansi => RESET,
            Sequences::Dumb => "\r\n",
        })?;
        let mut overflow = self.show(&mut tty, request, presentation, Overflow::Unseen)?;
        tty.wait_for_quiet(self.quiet)?;
        for _ in 0..MAX_KEYS {
            tty.flush()?;
            tty.write(&screen::prompt(request, overflow))?;
            let typed = tty.key().inspect_err(|_| {
                // The cursor is behind the prompt.
                let _gone = tty.write("\n");
            })?;
            match parse(&typed) {
                // Nobody says yes to what was not shown.
                TypedAnswer::Yes | TypedAnswer::Session if overflow == Overflow::Unseen => {
                    tty.write(screen::SEE_FIRST)?;
                }
                TypedAnswer::Yes => {
                    tty.write("yes\n")?;
                    return Ok(yes());
                }
                TypedAnswer::Session if !request.wider_answers().is_empty() => {
                    if let Some(remember) = self.choose_scope(&mut tty, request)? {
                        return Ok(ApprovalDecision { remember, ..yes() });
                    }
                }
                TypedAnswer::No(Reason::Typed(note)) => {
                    tty.write("no\n")?;
                    return Ok(denied(Some(note)));
                }
                TypedAnswer::No(Reason::Missing) => {
                    tty.write("no\n")?;
                    return Ok(denied(ask_why_not(&mut tty)?));
                }
                TypedAnswer::View if overflow != Overflow::None => {
                    let seen = self.page_through(&mut tty, request, presentation, overflow)?;
                    overflow = self.show(&mut tty, request, presentation, seen)?;
                }
                TypedAnswer::Why => {
                    tty.write("\n")?;
                    let text = screen::why(request, self.layout(&tty), overflow);
                    tty.write(&text)?;
                }
                TypedAnswer::Session | TypedAnswer::View | TypedAnswer::Unknown => {
                    tty.write(&screen::retry_text(request, overflow))?;
                }
            }
        }
        Err(ApproverError::Unreadable)
    }

    fn channel(&self) -> Channel {
        Channel::Terminal
    }
}

impl TerminalApprover {
    /// The layout now: the window may have been resized.
    fn layout(&self, tty: &Tty<'_>) -> Layout {
        let charset = match self.charset {
            Charset::Ascii if tty.is_utf8() => Charset::Unicode,
            known @ (Charset::Ascii | Charset::Unicode) => known,
        };
        Layout::new((self.size)(tty.as_fd()), self.colour, charset)
    }

    fn show(
        &self,
        tty: &mut Tty<'_>,
        request: &ApprovalRequest,
        presentation: &Presentation,
        overflow: Overflow,
    ) -> Result<Overflow, ApproverError> {
        let question = screen::question(request, presentation, self.layout(tty), overflow);
        tty.write(&question.text)?;
        Ok(question.overflow)
    }

    /// What a yes for the session is to cover; `None` where that is not chosen.
    fn choose_scope(&self, tty: &mut Tty<'_>, request: &ApprovalRequest) -> Result<Option<Remember>, ApproverError> {
        tty.write("\n")?;
        let wider = request.wider_answers();
        if let [only] = wider.as_slice()
            && only.remember == Remember::Session
        {
            return Ok(Some(only.remember));
        }
        let text = screen::scopes(request, self.layout(tty));
        tty.write(&text)?;
        tty.flush()?;
        tty.write(&screen::scope_prompt(request))?;
        let typed = tty.key()?;
        tty.write("\n")?;
        let key = match typed.as_slice() {
            [byte] => char::from(*byte).to_digit(10),
            _ => None,
        };
        let chosen = wider.iter().find(|wider| key == Some(u32::from(wider.number)));
        Ok(chosen.map(|wider| wider.remember))
    }

    fn page_through(
        &self,
        tty: &mut Tty<'_>,
        request: &ApprovalRequest,
        presentation: &Presentation,
        overflow: Overflow,
    ) -> Result<Overflow, ApproverError> {
        let style = match self.sequences {
            Sequences::Ansi => PageStyle::Replace,
            Sequences::Dumb => PageStyle::Append,
        };
        let lines = |layout| screen::all_lines(request, presentation, layout);
        match page_through(tty, style, |tty| self.layout(tty), lines)? {
            Reached::End => Ok(Overflow::Seen),
            Reached::NotEnd => Ok(overflow),
        }
    }
}

/// Asks for the reason of a no. Without one, it stays a no.
fn ask_why_not(tty: &mut Tty<'_>) -> Result<Option<String>, ApproverError> {
    // First: what is typed before it, and ends no line then, would wait for one that does.
    tty.set_input(Input::Lines)?;
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

fn denied(note: Option<String>) -> ApprovalDecision {
    ApprovalDecision { note, ..no() }
}

impl fmt::Debug for TerminalApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalApprover")
            .field("timeout", &self.timeout)
            .field("colour", &self.colour)
            .finish_non_exhaustive()
    }
}
