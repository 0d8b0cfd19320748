//! The language of libtest and nextest, for a program that must have a `main` of its own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// A test by name; it is told its own name, and fails by panicking.
pub(crate) type Trial = (&'static str, fn(&'static str));

/// Runs what the command line asks for of `trials`; of `hidden`, which are never listed, only what is named in full.
pub(crate) fn main(trials: &[Trial], hidden: &[Trial]) -> ExitCode {
    let asked = Asked::parse(std::env::args().skip(1));
    let chosen: Vec<Trial> = asked.chosen(trials, hidden);
    if asked.list {
        for (name, _) in chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for (name, trial) in &chosen {
        match catch_unwind(AssertUnwindSafe(|| trial(name))) {
            Ok(()) => println!("test {name} ... ok"),
            Err(panic) => {
                println!("test {name} ... FAILED\n{}", words(panic.as_ref()));
                failed.push(*name);
            }
        }
    }
    let (word, passed) = (
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
    );
    println!("\ntest result: {word}. {passed} passed; {} failed", failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked")
}

/// What the command line asks for.
#[derive(Debug, Default)]
struct Asked {
    list: bool,
    ignored: bool,
    exact: bool,
    names: Vec<String>,
    skipped: Vec<String>,
}

impl Asked {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let mut asked = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => asked.list = true,
                "--ignored" => asked.ignored = true,
                "--exact" => asked.exact = true,
                "--skip" => asked.skipped.extend(words.next()),
                "--format" | "--color" | "--test-threads" | "--logfile" | "-Z" => {
                    words.next();
                }
                option if option.starts_with('-') => {}
                _ => asked.names.push(word),
            }
        }
        asked
    }

    fn chosen(&self, trials: &[Trial], hidden: &[Trial]) -> Vec<Trial> {
        let hit = |name: &str, by: &str| if self.exact { name == by } else { name.contains(by) };
        let wanted = |(name, _): &&Trial| {
            !self.ignored
                && (self.names.is_empty() || self.names.iter().any(|by| hit(name, by)))
                && !self.skipped.iter().any(|by| hit(name, by))
        };
        let named = |(name, _): &&Trial| self.names.iter().any(|by| by == name);
        let listed = trials.iter().filter(wanted);
        listed.chain(hidden.iter().filter(named)).copied().collect()
    }
}
