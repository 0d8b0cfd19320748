//! Commands that run other commands: what they run is judged as well.
//!
//! A wrapper with an unknown option, or whose inner command is not visible, is not understood. Programs that only *can* run
//! others (git, make, an interpreter with a script) are programs like any other: their own words are judged.

use super::analysis::{Analysis, SimpleCommand};
use super::control::{exports_reviewed, test};
use super::matching::base_name;
use super::nested_shell::{is_nameless, line_of_another, shell};
use super::programs::{is_doubtful, is_opaque, is_shell, takes_a_line};
use super::word::Word;
use super::wrapper_table::{Kind, WRAPPERS, Wrapper};

/// Words that some shell reads as reserved at the start of a command.
const RESERVED: [&str; 13] = [
    "!", "{", "[[", "case", "coproc", "for", "function", "if", "select", "time", "until", "while", "(",
];

/// The longest command, in bytes, that is searched for inner commands. A line is shorter; a command that is given as words may be
/// longer.
const MAX_OPENED: usize = 64 * 1024;
/// The most placeholders of `xargs`.
const MAX_PLACEHOLDERS: usize = 4;

/// Adds the command that `words` run, if they run one, to `analysis`.
pub(super) fn open(words: &[Word], analysis: &mut Analysis, depth: usize) {
    let Some((name, rest)) = words.split_first() else {
        return;
    };
    let Some(path) = name.literal() else {
        return analysis.doubt("the name of a command is known only when it runs");
    };
    let name = base_name(path);
    if path.contains('/') && is_nameless(path) {
        return analysis.doubt(format!("{path} stands for another program"));
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name);
    let is_opened = wrapper.is_some() || name == "find" || is_shell(name) || takes_a_line(name);
    if is_opened && rest.iter().map(|word| word.shown().len() + 1).sum::<usize>() > MAX_OPENED {
        return analysis.doubt(format!("what {name} runs is longer than {MAX_OPENED} bytes"));
    }
    if let Some(wrapper) = wrapper {
        return wrapper.open(rest, analysis, depth);
    }
    match name {
        "" => analysis.doubt("a command has no name"),
        "find" => find(rest, analysis, depth),
        "cd" | "chdir" | "pushd" | "popd" => analysis.changes_directory = true,
        "set" => set(rest, analysis),
        "test" | "[" => test(name, rest, analysis),
        "printf" | "wait" | "jobs" => evaluates(name, rest, analysis),
        "export" if exports_reviewed(rest) => {}
        _ if is_shell(name) => shell(rest, analysis, depth),
        _ if is_doubtful(name) => analysis.doubt(format!("{name} changes what later words mean")),
        _ if is_opaque(name) => {
            if takes_a_line(name) {
                line_of_another(rest, analysis, depth);
            }
            analysis.doubt(format!("what {name} runs is not looked into"));
        }
        // A shell that does not reserve the word runs a command of that name.
        "[[" | "select" | "function" => analysis.doubt(format!("{name} is not understood by every shell")),
        _ => {}
    }
}

/// Whether the inner command of a program of this name is judged, so that its words need not be judged again.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

impl Wrapper {
    fn open(&self, mut rest: &[Word], analysis: &mut Analysis, depth: usize) {
        if self.name == "command"
            && rest
                .first()
                .and_then(Word::literal)
                .is_some_and(|w| matches!(w, "-v" | "-V"))
        {
            return;
        }
        // sudo and doas may use a PATH of their own.
        if matches!(self.name, "sudo" | "doas") {
            analysis.doubt(format!("{} may change where programs are searched", self.name));
        }
        let mut placeholders: Vec<&str> = Vec::new();
        while let Some((word, tail)) = rest.split_first() {
            let Some(text) = word.literal() else { break };
            if text == "--" {
                rest = tail;
                break;
            }
            if !text.starts_with('-') || text == "-" && self.name != "env" {
                break;
            }
            if self.name == "xargs" {
                placeholders.extend(replaced(text, tail.first()));
                if placeholders.len() > MAX_PLACEHOLDERS {
                    return analysis.doubt("xargs replaces too many texts");
                }
            }
            match self.option(text) {
                Some(0) => rest = tail,
                // A word that is no literal may become several words, and the command may be among them.
                Some(_) if tail.first().and_then(Word::literal).is_some() => rest = &tail[1..],
                Some(_) | None => return analysis.doubt(format!("an option of {} is not understood", self.name)),
            }
            if loses_path(self.name, text, tail.first()) {
                analysis.doubt(format!("{} may change where programs are searched", self.name));
            }
            if option_changes_directory(self.name, text) {
                analysis.changes_directory = true;
            }
        }
        if rest.len() > self.operands {
            if rest[..self.operands].iter().any(|operand| operand.literal().is_none()) {
                return analysis.doubt(format!("what {} runs is known only when it runs", self.name));
            }
            rest = &rest[self.operands..];
        } else if self.operands > 0 {
            return analysis.doubt(format!("{} is given nothing to run", self.name));
        }
        if self.kind == Kind::Assigns {
            while let Some((word, tail)) = rest.split_first() {
                if !word.shown().contains('=') {
                    break;
                }
                let Some((name, value)) = word.literal().and_then(|text| text.split_once('=')) else {
                    analysis.doubt(format!("what {} runs is known only when it runs", self.name));
                    analysis.assignments.push(word.shown().to_owned());
                    rest = tail;
                    continue;
                };
                let value = Word::Literal(value.to_owned());
                analysis.assign(word.shown().to_owned(), name, Some(&value));
                rest = tail;
            }
        }
        if rest.is_empty() {
            return;
        }
        // After another reserved word, bash reads `time` as a reserved word too, and the rest as a pipeline.
        if self.name == "time" && begins_a_pipeline(&rest[0]) {
            analysis.doubt("what time runs differs from shell to shell");
        }
        let filled = |word: &Word| match word {
            Word::Literal(text) if placeholders.iter().any(|placeholder| text.contains(placeholder)) => {
                Word::Dynamic(text.clone())
            }
            Word::Literal(_) | Word::Dynamic(_) => word.clone(),
        };
        let mut words: Vec<Word> = rest.iter().map(filled).collect();
        if self.kind == Kind::Appends {
            words.push(Word::Dynamic("…".to_owned()));
        }
        analysis.command(SimpleCommand::of(words), depth + 1);
    }

    /// The number of further words that the option takes; `None` where the option is unknown.
    fn option(&self, text: &str) -> Option<usize> {
        if text.starts_with("--") {
            let attachable = |known: &str, name| known.split_once('=').is_some_and(|(known, _)| known == name);
            return match text.split_once('=') {
                Some((name, _)) => self.long.iter().any(|known| attachable(known, name)).then_some(0),
                None if self.long.contains(&text) => Some(0),
                None if self.long.iter().any(|known| known.strip_suffix("=?") == Some(text)) => Some(0),
                None => self
                    .long
                    .iter()
                    .any(|known| known.strip_suffix('=') == Some(text))
                    .then_some(1),
            };
        }
        let letters = text.strip_prefix('-')?;
        if self.name == "nice" && !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_digit()) {
            return Some(0);
        }
        for (index, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let attached = index + letter.len_utf8() < letters.len();
                return Some(usize::from(!attached));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(0)
    }
}

/// Whether the word is no program name at the start of a pipeline: an assignment or a reserved word.
fn begins_a_pipeline(word: &Word) -> bool {
    let shown = word.shown();
    shown.contains(['=', '[']) || RESERVED.contains(&shown)
}

/// Whether with this option the wrapper runs its command with another PATH, without one, or as a login shell, whose files set PATH.
fn loses_path(wrapper: &str, option: &str, value: Option<&Word>) -> bool {
    match wrapper {
        "env" => clears_path(option, value),
        // `exec -c` empties the environment, `exec -l` and `exec -a -sh` start a login shell, `command -p` has its own PATH.
        "exec" | "command" => true,
        _ => false,
    }
}

/// Whether the option of env removes PATH. A program then searches in places of its own choice.
fn clears_path(option: &str, value: Option<&Word>) -> bool {
    let unset = |name: &str| matches!(name, "" | "PATH");
    match option.strip_prefix("--") {
        Some(long) => {
            long == "ignore-environment" || long.split_once('=').map_or(long == "unset", |(_, name)| unset(name))
        }
        None => match option.split_once('u') {
            Some((flags, "")) => flags.contains('i') || value.and_then(Word::literal).is_none_or(unset),
            Some((flags, name)) => flags.contains('i') || unset(name),
            None => option.contains('i') || option == "-",
        },
    }
}

/// Whether with this option the inner command starts in another directory.
fn option_changes_directory(wrapper: &str, option: &str) -> bool {
    let letter = match wrapper {
        "env" => 'C',
        "sudo" => 'D',
        _ => return false,
    };
    option.starts_with("--chdir") || !option.starts_with("--") && option.contains(letter)
}

/// Adds the command of each `-exec … ;` of find.
fn find(rest: &[Word], analysis: &mut Analysis, depth: usize) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.literal() {
            None => analysis.doubt("an argument of find is known only when it runs"),
            Some(exec @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                analysis.changes_directory |= exec.ends_with("dir");
                let inner: Vec<Word> = words
                    .by_ref()
                    .take_while(|word| !matches!(word.literal(), Some(";" | "+")))
                    .map(|word| match word {
                        Word::Literal(text) if text.contains("{}") => Word::Dynamic(text.clone()),
                        Word::Literal(_) | Word::Dynamic(_) => word.clone(),
                    })
                    .collect();
                // An `-exec` may be the argument of a test, and the real one may follow.
                let begins = |word: &Word| matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
                let is_option = inner.first().is_some_and(|name| name.shown().starts_with('-'));
                if is_option || inner.iter().any(begins) {
                    analysis.doubt("where an -exec of find begins is not clear");
                }
                analysis.command(SimpleCommand::of(inner), depth + 1);
            }
            Some(_) => {}
        }
    }
}

/// The placeholder that this option of xargs sets.
fn replaced<'a>(option: &'a str, next: Option<&'a Word>) -> Option<&'a str> {
    if let Some(long) = option.strip_prefix("--replace") {
        return Some(long.strip_prefix('=').unwrap_or("{}"));
    }
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (at, letter) = letters.char_indices().find(|(_, letter)| matches!(letter, 'I' | 'i'))?;
    match (&letters[at + 1..], letter) {
        ("", 'I') => next.and_then(Word::literal),
        ("", _) => Some("{}"),
        (attached, _) => Some(attached),
    }
}

/// Handles `set`. Only options that make a script stricter, or print more, are understood.
fn set(rest: &[Word], analysis: &mut Analysis) {
    let harmless = |word: &Word| match word.literal() {
        Some("pipefail") => true,
        Some(text) => text
            .strip_prefix(['-', '+'])
            .is_some_and(|letters| !letters.is_empty() && letters.bytes().all(|b| b"euxo".contains(&b))),
        None => false,
    };
    if !rest.iter().all(harmless) {
        analysis.doubt("set changes what later words mean");
    }
}

/// Handles builtins that evaluate an array subscript after `-v` or `-p`, or run the word after `-x`.
///
/// Letters may be combined (`wait -fp`), and a value may be attached.
fn evaluates(name: &str, rest: &[Word], analysis: &mut Analysis) {
    let evaluated = |word: &Word| match word.literal() {
        Some(text) => match name {
            "wait" => text.starts_with('-') && text.contains('p'),
            "jobs" => text.starts_with('-') && text.contains('x'),
            _ => text.starts_with("-v"),
        },
        None => name != "printf" || rest.first() == Some(word),
    };
    if rest.iter().any(evaluated) {
        analysis.doubt(format!("{name} may evaluate its arguments"));
    }
}
