//! Leafing through what is too long for one screen, inside the terminal of the question.
//!
//! No program of the user's does it: it would run unconfined on text that an agent chose.

use super::approver::ApproverError;
use super::keys::{Key, keys};
use super::screen::{Colour, Letters, Look};
use super::tty::{Input, Tty};

/// How a page is put on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paper {
    /// One page below the other: the terminal knows no sequences.
    Roll,
    /// Each page in place of the last, on a screen of its own.
    Sheet,
}

/// Whether the last line was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    NotTheEnd,
    TheEnd,
}

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the lines that `lines` makes for a look, until the person has had enough.
pub(super) fn leaf(
    tty: &mut Tty<'_>,
    paper: Paper,
    look: impl Fn(&Tty<'_>) -> Look,
    lines: impl Fn(Look) -> Vec<String>,
) -> Result<Reached, ApproverError> {
    tty.take(Input::Keys)?;
    let reached = match paper {
        Paper::Roll => leaf_on(tty, paper, look, lines),
        Paper::Sheet => {
            tty.write(ENTER)?;
            let reached = leaf_on(tty, paper, look, lines);
            match tty.write(LEAVE) {
                Ok(()) => reached,
                // Why there was no answer says more than that the terminal is stopped.
                Err(error) => Err(reached.err().unwrap_or(error)),
            }
        }
    };
    tty.take(Input::Lines)?;
    reached
}

fn leaf_on(
    tty: &mut Tty<'_>,
    paper: Paper,
    look: impl Fn(&Tty<'_>) -> Look,
    lines: impl Fn(Look) -> Vec<String>,
) -> Result<Reached, ApproverError> {
    let mut seen = look(tty);
    let mut pages = Pages::new(lines(seen), seen);
    loop {
        let page = pages.page();
        tty.write(&match paper {
            Paper::Roll => format!("\n{page}"),
            Paper::Sheet => format!("{CLEAR}{page}"),
        })?;
        let mut buffer = [0; 64];
        let count = tty.read(&mut buffer)?;
        for key in keys(buffer.get(..count).unwrap_or_default()) {
            match key {
                Key::Leave => {
                    if paper == Paper::Roll {
                        tty.write("\n")?;
                    }
                    return Ok(pages.reached);
                }
                Key::Interrupt => return Err(ApproverError::Interrupted),
                Key::EndOfInput => return Err(ApproverError::EndOfInput),
                Key::LineDown | Key::LineUp | Key::PageDown | Key::PageUp | Key::First | Key::Last | Key::Other => {
                    pages.turn(key);
                }
            }
        }
        let now = look(tty);
        if now != seen {
            seen = now;
            pages.refit(lines(now), now);
        }
    }
}

/// Lines, and which of them are on the screen.
#[derive(Debug)]
struct Pages {
    lines: Vec<String>,
    look: Look,
    top: usize,
    reached: Reached,
}

impl Pages {
    fn new(lines: Vec<String>, look: Look) -> Self {
        Self {
            lines,
            look,
            top: 0,
            reached: Reached::NotTheEnd,
        }
    }

    /// For a screen of another size: where it was, as near as can be.
    fn refit(&mut self, lines: Vec<String>, look: Look) {
        self.top = self.top * lines.len() / self.lines.len().max(1);
        (self.lines, self.look) = (lines, look);
        self.top = self.top.min(self.last_top());
    }

    /// All rows but the one that says where one is.
    const fn height(&self) -> usize {
        self.look.rows.saturating_sub(1)
    }

    fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.height())
    }

    fn turn(&mut self, key: Key) {
        let page = self.height();
        self.top = match key {
            Key::LineDown => self.top + 1,
            Key::LineUp => self.top.saturating_sub(1),
            Key::PageDown => self.top + page,
            Key::PageUp => self.top.saturating_sub(page),
            Key::First => 0,
            Key::Last => self.last_top(),
            Key::Leave | Key::Interrupt | Key::EndOfInput | Key::Other => self.top,
        }
        .min(self.last_top());
    }

    /// The page as it is shown, the cursor behind its last line.
    fn page(&mut self) -> String {
        let end = (self.top + self.height()).min(self.lines.len());
        if end == self.lines.len() {
            self.reached = Reached::TheEnd;
        }
        let shown = self.lines.get(self.top..end).unwrap_or_default().concat();
        let status = self.status(end);
        match self.look.colour {
            Colour::On => format!("{shown}\x1b[7m{status}\x1b[0m"),
            Colour::Off => shown + &status,
        }
    }

    /// The longest of the texts that fits.
    fn status(&self, end: usize) -> String {
        let dash = match self.look.letters {
            Letters::Ascii => "-",
            Letters::Unicode => "–",
        };
        let place = format!("line {}{dash}{end} of {}", self.top + 1, self.lines.len());
        let keys = if end == self.lines.len() {
            "; the end; q: back"
        } else {
            "; Space: on; q: back"
        };
        let long = format!("{place}{keys}; also Enter, b, g, G, arrows");
        [long, format!("{place}{keys}"), place]
            .into_iter()
            .find(|text| text.chars().count() + 1 < self.look.columns)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(columns: u16, rows: u16) -> Look {
        Look::new(Some((columns, rows)), Colour::Off, Letters::Ascii)
    }

    fn pages(count: usize, look: Look) -> Pages {
        Pages::new((1..=count).map(|number| format!("line {number}\n")).collect(), look)
    }

    #[test]
    fn keys_turn_pages_and_never_pass_the_ends() {
        let mut pages = pages(100, look(80, 11));
        for (key, top) in [
            (Key::PageUp, 0),
            (Key::LineUp, 0),
            (Key::LineDown, 1),
            (Key::PageDown, 11),
            (Key::LineUp, 10),
            (Key::Last, 90),
            (Key::PageDown, 90),
            (Key::LineDown, 90),
            (Key::PageUp, 80),
            (Key::Other, 80),
            (Key::First, 0),
        ] {
            pages.turn(key);
            assert_eq!(pages.top, top, "{key:?}");
        }
    }

    #[test]
    fn the_end_is_reached_when_the_last_line_was_on_the_screen_and_not_before() {
        let mut pages = pages(25, look(80, 11));
        for (key, reached) in [
            (Key::Other, Reached::NotTheEnd),
            (Key::PageDown, Reached::NotTheEnd),
            (Key::LineDown, Reached::NotTheEnd),
            (Key::PageDown, Reached::TheEnd),
            (Key::First, Reached::TheEnd),
        ] {
            pages.turn(key);
            pages.page();
            assert_eq!(pages.reached, reached, "{key:?}");
        }
        let mut short = super::tests::pages(3, look(80, 24));
        assert!(
            short
                .page()
                .starts_with("line 1\nline 2\nline 3\nline 1-3 of 3; the end")
        );
        assert_eq!(short.reached, Reached::TheEnd);
    }

    #[test]
    fn a_page_fits_the_screen() {
        for (columns, rows) in [(24, 4), (40, 20), (80, 24), (200, 60)] {
            let mut pages = pages(1000, look(columns, rows));
            for _ in 0..3 {
                let page = pages.page();
                assert_eq!(page.matches('\n').count(), usize::from(rows) - 1);
                assert!(page.lines().all(|line| line.len() < usize::from(columns)), "{page}");
                assert!(page.contains(" of 1000"), "{page}");
                pages.turn(Key::PageDown);
            }
        }
    }

    #[test]
    fn another_size_of_the_screen_keeps_the_place() {
        let mut pages = pages(100, look(80, 11));
        pages.turn(Key::PageDown);
        pages.turn(Key::PageDown);
        let twice = (1..=200).map(|number| format!("half {number}\n")).collect();
        pages.refit(twice, look(40, 21));
        assert_eq!(pages.top, 40);
        pages.refit(vec!["all\n".to_owned()], look(200, 21));
        assert_eq!(pages.top, 0);
    }
}
