//! A terminal with one program in it: a tmux server of its own, real keys, and what is on the screen.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Fixture, PATIENCE};

/// What the first line of every question has.
const HEAD: &str = "Stockade asks";
/// How the line begins where an answer is typed.
const PROMPT: &str = "approve? [";

const OPTIONS: &str = "\
set -g default-terminal xterm-256color
set -g history-limit 5000
set -g status off
set -s escape-time 0
";

/// Runs a program, notes how it ended, and keeps the screen as it is then. Ctrl-C is for the program.
///
/// The title comes last: when tmux has read it, it has read all that the program wrote.
const KEEPER: &str = "ended=$1; shift; trap : INT; \"$@\"; echo $? > \"$ended\"; printf '\\033\\\\\\033]2;%s\\033\\\\' ended; exec sleep infinity";

/// How a terminal looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

pub(crate) const USUAL: Size = Size { columns: 100, rows: 40 };

/// A program at a terminal.
#[derive(Debug)]
pub(crate) struct Terminal<'w> {
    world: &'w Fixture,
    socket: PathBuf,
    /// Where its exit code will be.
    ended: PathBuf,
    /// How many questions were waited for.
    asked: Cell<usize>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// All that was on the screen, line by line.
    pub(crate) shown: String,
}

/// A failing test leaves no server behind.
impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _gone = self.tmux(&["kill-server"]);
    }
}

impl<'w> Terminal<'w> {
    /// Starts `argv` in the workspace of the fixture, as its actor.
    pub(crate) fn start(world: &'w Fixture, size: Size, environment: &[(&str, &str)], argv: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let options = world.write(world.base().join("tmux.conf"), OPTIONS);
        let terminal = Self {
            world,
            socket: world.base().join(format!("run/tmux-{number}")),
            ended: world.base().join(format!("run/ended-{number}")),
            asked: Cell::new(0),
        };
        let (columns, rows) = (size.columns.to_string(), size.rows.to_string());
        let socket = terminal.socket.to_str().unwrap();
        let options = ["-u", "-S", socket, "-f", options.to_str().unwrap()];
        let session = ["new-session", "-d", "-x", &columns, "-y", &rows];
        let keeper = ["/bin/sh", "-c", KEEPER, "sh", terminal.ended.to_str().unwrap()];
        let tmux = world.bare("/usr/bin/tmux").args(options).args(session);
        let mut tmux = tmux.args(keeper).args(argv);
        for (name, value) in environment {
            tmux = tmux.env(name, value);
        }
        tmux.output().ok();
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let tmux = self.world.bare("/usr/bin/tmux").args(["-u", "-S"]);
        tmux.args([&self.socket]).args(words).output().out()
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with its colours, as sequences.
    pub(crate) fn screen_in_colour(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// What is on the screen, and what has left it at its top.
    pub(crate) fn scroll(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "no {what} in\n{}", self.scroll());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the text is on the screen.
    #[track_caller]
    pub(crate) fn see(&self, text: &str) -> String {
        self.wait_until(text, |terminal| terminal.screen().contains(text));
        self.screen()
    }

    /// Waits until a question that was not waited for before has its prompt; the question, without it.
    #[track_caller]
    pub(crate) fn question(&self) -> String {
        let count = self.asked.get() + 1;
        self.asked.set(count);
        self.wait_until("question", |terminal| {
            let shown = terminal.scroll();
            let prompt = shown.trim_end().lines().last();
            let waits = prompt.is_some_and(|line| line.starts_with(PROMPT) && line.ends_with(']'));
            waits && shown.matches(HEAD).count() == count
        });
        let shown = self.scroll();
        let (_, question) = shown.rsplit_once(HEAD).unwrap();
        question.rsplit_once(PROMPT).unwrap().0.to_owned()
    }

    /// Waits until there were so many prompts, and the last one waits for an answer.
    #[track_caller]
    pub(crate) fn prompted(&self, times: usize) {
        self.wait_until("prompt", |terminal| {
            let shown = terminal.scroll();
            let prompt = shown.trim_end().lines().last();
            let waits = prompt.is_some_and(|line| line.starts_with(PROMPT) && line.ends_with(']'));
            waits && shown.matches(PROMPT).count() == times
        });
    }

    /// The keys that may answer the question on the screen.
    #[track_caller]
    pub(crate) fn keys_offered(&self) -> String {
        let shown = self.screen();
        let (_, prompt) = shown.rsplit_once(PROMPT).unwrap();
        prompt.split(']').next().unwrap().to_owned()
    }

    /// Types text, letter by letter.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key, by the name it has in tmux.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn enters(&self, text: &str) {
        self.types(text);
        self.press("Enter");
    }

    /// Waits for a question and answers it; what was asked.
    #[track_caller]
    pub(crate) fn answer(&self, text: &str) -> String {
        let question = self.question();
        self.types(text);
        question
    }

    /// Waits for a question and says yes to exactly this until the session ends; what was asked.
    #[track_caller]
    pub(crate) fn answer_for_the_session(&self) -> String {
        let question = self.answer("s");
        self.see("which? [1/");
        self.types("1");
        question
    }

    /// Waits for a question and says no, with a reason; what was asked.
    #[track_caller]
    pub(crate) fn refuse(&self, reason: &str) -> String {
        let question = self.answer("n");
        self.wait_until("reason", |terminal| {
            let shown = terminal.screen();
            let last = shown.trim_end().lines().last();
            last.is_some_and(|line| line.starts_with("reason (empty: none):"))
        });
        self.enters(reason);
        question
    }

    /// How many questions there were.
    pub(crate) fn questions(&self) -> usize {
        self.scroll().matches(HEAD).count()
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn end(&self) -> Ended {
        let code = |terminal: &Self| fs::read_to_string(&terminal.ended).ok()?.trim_end().parse().ok();
        self.wait_until("end", |terminal| {
            let title = terminal.tmux(&["display-message", "-p", "#{pane_title}"]);
            title.trim_end() == "ended" && code(terminal).is_some()
        });
        Ended {
            code: code(self).unwrap(),
            shown: self.scroll(),
        }
    }
}
