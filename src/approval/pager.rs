//! A pager for what is too long for one screen.
//!
//! The user's own pager would run unconfined on text that an agent chose.

use super::approver::ApproverError;
use super::keys::{Key, keys};
use super::screen::{Charset, Colour, Layout};
use super::tty::{Input, Tty};

/// How a page is put on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageStyle {
    /// One page below the other: the terminal knows no escape sequences.
    Append,
    /// Each page in place of the last, on the alternate screen.
    Replace,
}

/// Whether the last line was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    NotEnd,
    End,
}

pub(super) const ENTER: &str = "\x1b[?1049h";
pub(super) const LEAVE: &str = "\x1b[?1049l";
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the lines that `lines` makes for a layout, until the person leaves.
pub(super) fn page_through(
    tty: &mut Tty<'_>,
    style: PageStyle,
    layout: impl Fn(&Tty<'_>) -> Layout,
    lines: impl Fn(Layout) -> Vec<String>,
) -> Result<Reached, ApproverError> {
    tty.set_input(Input::Keys)?;
    let reached = match style {
        PageStyle::Append => run(tty, style, layout, lines),
        PageStyle::Replace => {
            tty.write(ENTER)?;
            let reached = run(tty, style, layout, lines);
            match tty.write(LEAVE) {
                Ok(()) => reached,
                // The first error is the cause.
                Err(error) => Err(reached.err().unwrap_or(error)),
            }
        }
    };
    tty.set_input(Input::Lines)?;
    reached
}

fn run(
    tty: &mut Tty<'_>,
    style: PageStyle,
    layout: impl Fn(&Tty<'_>) -> Layout,
    lines: impl Fn(Layout) -> Vec<String>,
) -> Result<Reached, ApproverError> {
    let mut shown_layout = layout(tty);
    let mut pages = Pages::new(lines(shown_layout), shown_layout);
    loop {
        let page = pages.page();
        tty.write(&match style {
            PageStyle::Append => format!("\n{page}"),
            PageStyle::Replace => format!("{CLEAR}{page}"),
        })?;
        let mut buffer = [0; 64];
        let count = tty.read(&mut buffer)?;
        for key in keys(buffer.get(..count).unwrap_or_default()) {
            match key {
                Key::Leave => {
                    if style == PageStyle::Append {
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
        let now = layout(tty);
        if now != shown_layout {
            shown_layout = now;
            pages.resize(lines(now), now);
        }
    }
}

/// Lines, and which of them are on the screen.
#[derive(Debug)]
struct Pages {
    lines: Vec<String>,
    layout: Layout,
    top: usize,
    reached: Reached,
}

impl Pages {
    fn new(lines: Vec<String>, layout: Layout) -> Self {
        Self {
            lines,
            layout,
            top: 0,
            reached: Reached::NotEnd,
        }
    }

    /// Lays out for another size of the screen, at about the same position.
    fn resize(&mut self, lines: Vec<String>, layout: Layout) {
        self.top = self.top * lines.len() / self.lines.len().max(1);
        (self.lines, self.layout) = (lines, layout);
        self.top = self.top.min(self.last_top());
    }

    /// All rows but the status line.
    const fn height(&self) -> usize {
        self.layout.rows.saturating_sub(1)
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

    /// The text of the page and the status line.
    fn page(&mut self) -> String {
        let end = (self.top + self.height()).min(self.lines.len());
        if end == self.lines.len() {
            self.reached = Reached::End;
        }
        let shown = self.lines.get(self.top..end).unwrap_or_default().concat();
        let status = self.status(end);
        match self.layout.colour {
            Colour::On => format!("{shown}\x1b[7m{status}\x1b[0m"),
            Colour::Off => shown + &status,
        }
    }

    /// The longest of the texts that fits.
    fn status(&self, end: usize) -> String {
        let dash = match self.layout.charset {
            Charset::Ascii => "-",
            Charset::Unicode => "–",
        };
        let position = format!("line {}{dash}{end} of {}", self.top + 1, self.lines.len());
        let keys = if end == self.lines.len() {
            "; the end; q: back"
        } else {
            "; Space: on; q: back"
        };
        let long = format!("{position}{keys}; also Enter, b, g, G, arrows");
        [long, format!("{position}{keys}"), position]
            .into_iter()
            .find(|text| text.chars().count() + 1 < self.layout.columns)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(columns: u16, rows: u16) -> Layout {
        Layout::new(Some((columns, rows)), Colour::Off, Charset::Ascii)
    }

    fn pages(count: usize, layout: Layout) -> Pages {
        Pages::new((1..=count).map(|number| format!("line {number}\n")).collect(), layout)
    }

    #[test]
    fn keys_turn_pages_and_never_pass_the_ends() {
        let mut pages = pages(100, layout(80, 11));
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
        let mut pages = pages(25, layout(80, 11));
        for (key, reached) in [
            (Key::Other, Reached::NotEnd),
            (Key::PageDown, Reached::NotEnd),
            (Key::LineDown, Reached::NotEnd),
            (Key::PageDown, Reached::End),
            (Key::First, Reached::End),
        ] {
            pages.turn(key);
            pages.page();
            assert_eq!(pages.reached, reached, "{key:?}");
        }
        let mut short = super::tests::pages(3, layout(80, 24));
        assert!(
            short
                .page()
                .starts_with("line 1\nline 2\nline 3\nline 1-3 of 3; the end")
        );
        assert_eq!(short.reached, Reached::End);
    }

    #[test]
    fn a_page_fits_the_screen() {
        for (columns, rows) in [(24, 4), (40, 20), (80, 24), (200, 60)] {
            let mut pages = pages(1000, layout(columns, rows));
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
    fn another_size_of_the_screen_keeps_the_position() {
        let mut pages = pages(100, layout(80, 11));
        pages.turn(Key::PageDown);
        pages.turn(Key::PageDown);
        let twice = (1..=200).map(|number| format!("half {number}\n")).collect();
        pages.resize(twice, layout(40, 21));
        assert_eq!(pages.top, 40);
        pages.resize(vec!["all\n".to_owned()], layout(200, 21));
        assert_eq!(pages.top, 0);
    }
}
