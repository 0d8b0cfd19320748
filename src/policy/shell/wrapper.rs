//! Commands that run other commands: what they run is judged as well.
//!
//! A wrapper whose options are not all known here, or whose inner command cannot be seen, is a
//! doubt. Programs that merely *can* run others when told to (git, make, an interpreter with a
//! script) are programs like any other: their own words are judged.

use super::matching::base_name;
use super::walk::{Reading, Simple};
use super::word::Word;

/// How a wrapper's words divide into options and inner command.
#[derive(Debug)]
struct Wrapper {
    name: &'static str,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with a value, attached or in the next word.
    values: &'static str,
    /// Long options without a value; with `=` after the name, one with a value.
    long: &'static [&'static str],
    /// How many operands stand before the inner command.
    operands: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The inner command is the rest.
    Plain,
    /// Assignments may stand before the inner command.
    Assigns,
    /// Arguments that cannot be seen are added to the inner command.
    Appends,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "env",
        flags: "i0v",
        values: "uC",
        long: &["--ignore-environment", "--null", "--debug", "--unset=", "--chdir="],
        operands: 0,
        kind: Kind::Assigns,
    },
    Wrapper {
        name: "nice",
        flags: "",
        values: "n",
        long: &["--adjustment="],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "nohup",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "setsid",
        flags: "cfw",
        values: "",
        long: &["--ctty", "--fork", "--wait"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "timeout",
        flags: "v",
        values: "ks",
        long: &[
            "--foreground",
            "--preserve-status",
            "--verbose",
            "--kill-after=",
            "--signal=",
        ],
        operands: 1,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "stdbuf",
        flags: "",
        values: "ioe",
        long: &["--input=", "--output=", "--error="],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "ionice",
        flags: "t",
        values: "cn",
        long: &["--class=", "--classdata=", "--ignore"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "time",
        flags: "pv",
        values: "",
        long: &["--portability"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "command",
        flags: "p",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "builtin",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "exec",
        flags: "cl",
        values: "a",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "xargs",
        flags: "0rtpx",
        values: "InPLdaEs",
        long: &[
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--max-args=",
            "--max-procs=",
            "--max-lines=",
            "--delimiter=",
            "--arg-file=",
            "--replace=",
        ],
        operands: 0,
        kind: Kind::Appends,
    },
    Wrapper {
        name: "sudo",
        flags: "nEHbkPS",
        values: "ughpCTrtDRU",
        long: &["--non-interactive", "--preserve-env", "--user=", "--group="],
        operands: 0,
        kind: Kind::Assigns,
    },
    Wrapper {
        name: "doas",
        flags: "n",
        values: "u",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "busybox",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "toybox",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
];

/// Programs that run a command in ways that are not followed here.
const OPAQUE: &[&str] = &[
    "su",
    "runuser",
    "pkexec",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "capsh",
    "bwrap",
    "firejail",
    "proot",
    "fakeroot",
    "strace",
    "ltrace",
    "gdb",
    "script",
    "scriptreplay",
    "watch",
    "parallel",
    "flock",
    "chrt",
    "taskset",
    "numactl",
    "prlimit",
    "setarch",
    "linux32",
    "linux64",
    "unbuffer",
    "expect",
    "at",
    "batch",
    "crontab",
    "systemd-run",
    "start-stop-daemon",
    "run-parts",
    "tmux",
    "screen",
    "entr",
    "fd",
    "fdfind",
    "rlwrap",
    "catchsegv",
    "valgrind",
    "perf",
    "dbus-run-session",
    "ssh-agent",
    "xvfb-run",
    "choom",
    "uclampset",
    "coresched",
    "cgexec",
    "zsh",
    "ksh",
    "ksh93",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "posh",
    "yash",
    "nu",
    "pwsh",
];

/// Builtins that change how later words are understood, or evaluate their arguments as shell.
const DOUBTFUL: &[&str] = &[
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "coproc",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "enable",
    "hash",
    "shopt",
    "complete",
    "compgen",
    "compopt",
    "bind",
    "fc",
    "history",
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "ash"];

/// Finds the command that `words` run, if they run one, and gives it to `reading`.
pub(super) fn open(words: &[Word], reading: &mut Reading, depth: usize) {
    let Some((name, rest)) = words.split_first() else {
        return;
    };
    let Some(name) = name.literal().map(base_name) else {
        return reading.doubt("the name of a command is known only when it runs");
    };
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return wrapper.open(rest, reading, depth);
    }
    match name {
        "" => reading.doubt("a command has no name"),
        "find" => find(rest, reading, depth),
        "cd" | "pushd" | "popd" => reading.moved = true,
        "set" => set(rest, reading),
        "printf" | "test" | "[" | "wait" => evaluates(name, rest, reading),
        _ if SHELLS.contains(&name) => shell(rest, reading, depth),
        _ if DOUBTFUL.contains(&name) => reading.doubt(format!("{name} changes what later words mean")),
        _ if OPAQUE.contains(&name) => reading.doubt(format!("what {name} runs is not looked into")),
        // Reserved words are commands only to a shell that does not know them.
        "[[" | "select" | "function" => reading.doubt(format!("{name} is not understood by every shell")),
        _ => {}
    }
}

impl Wrapper {
    fn open(&self, mut rest: &[Word], reading: &mut Reading, depth: usize) {
        if self.name == "command"
            && rest
                .first()
                .and_then(Word::literal)
                .is_some_and(|w| matches!(w, "-v" | "-V"))
        {
            return;
        }
        while let Some((word, tail)) = rest.split_first() {
            let Some(text) = word.literal() else { break };
            if text == "--" {
                rest = tail;
                break;
            }
            if !text.starts_with('-') || text == "-" && self.name != "env" {
                break;
            }
            match self.option(text) {
                Some(0) => rest = tail,
                Some(_) if !tail.is_empty() => rest = &tail[1..],
                Some(_) | None => return reading.doubt(format!("an option of {} is not understood", self.name)),
            }
            if self.name == "env" && (text.starts_with("-C") || text.starts_with("--chdir")) {
                reading.moved = true;
            }
        }
        if rest.len() > self.operands {
            rest = &rest[self.operands..];
        } else if self.operands > 0 {
            return reading.doubt(format!("{} is given nothing to run", self.name));
        }
        if self.kind == Kind::Assigns {
            while let Some((word, tail)) = rest.split_first() {
                if !word.shown().contains('=') {
                    break;
                }
                reading.assign(word.shown().to_owned());
                rest = tail;
            }
        }
        if rest.is_empty() {
            return;
        }
        let mut words = rest.to_vec();
        if self.kind == Kind::Appends {
            words.push(Word::Dynamic("…".to_owned()));
        }
        reading.command(
            Simple {
                words,
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            depth + 1,
        );
    }

    /// How many further words the option takes; `None` if it is not known.
    fn option(&self, text: &str) -> Option<usize> {
        if text.starts_with("--") {
            return match text.split_once('=') {
                Some((name, _)) => self
                    .long
                    .iter()
                    .any(|known| known.strip_suffix('=') == Some(name))
                    .then_some(0),
                None if self.long.contains(&text) => Some(0),
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

/// Every `-exec … ;` of find.
fn find(rest: &[Word], reading: &mut Reading, depth: usize) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.literal() {
            None => reading.doubt("an argument of find is known only when it runs"),
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let inner: Vec<Word> = words
                    .by_ref()
                    .take_while(|word| !matches!(word.literal(), Some(";" | "+")))
                    .map(|word| match word {
                        Word::Literal(text) if text.contains("{}") => Word::Dynamic(text.clone()),
                        Word::Literal(_) | Word::Dynamic(_) => word.clone(),
                    })
                    .collect();
                reading.command(
                    Simple {
                        words: inner,
                        inputs: Vec::new(),
                        outputs: Vec::new(),
                    },
                    depth + 1,
                );
            }
            Some(_) => {}
        }
    }
}

/// `sh -c LINE`; a shell that reads its commands from a file is a program like any other.
fn shell(rest: &[Word], reading: &mut Reading, depth: usize) {
    let mut words = rest.iter();
    let mut line_follows = false;
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else {
            return reading.doubt("what a shell runs is known only when it runs");
        };
        if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            match letters {
                "-norc" | "-noprofile" | "-posix" => {}
                "o" => drop(words.next()),
                _ if letters.bytes().all(|b| b"ceuxlfnv".contains(&b)) => line_follows |= letters.contains('c'),
                _ => return reading.doubt("an option of a shell is not understood"),
            }
        } else if text.starts_with('+') || text == "-" {
            return reading.doubt("an option of a shell is not understood");
        } else if line_follows {
            return reading.line(text, depth + 1);
        } else {
            return;
        }
    }
    reading.doubt("what a shell runs is read from its input");
}

/// `set` with the options that only make a script stricter or more talkative.
fn set(rest: &[Word], reading: &mut Reading) {
    let harmless = |word: &Word| match word.literal() {
        Some("pipefail") => true,
        Some(text) => text
            .strip_prefix(['-', '+'])
            .is_some_and(|letters| !letters.is_empty() && letters.bytes().all(|b| b"euxo".contains(&b))),
        None => false,
    };
    if !rest.iter().all(harmless) {
        reading.doubt("set changes what later words mean");
    }
}

/// Builtins that evaluate an array subscript given with `-v` or `-p`.
fn evaluates(name: &str, rest: &[Word], reading: &mut Reading) {
    let evaluated = |word: &Word| match word.literal() {
        Some(text) => text.starts_with("-v") || name == "wait" && text.starts_with("-p") || text == "-R",
        None => name != "printf" || rest.first() == Some(word),
    };
    if rest.iter().any(evaluated) {
        reading.doubt(format!("{name} may evaluate its arguments"));
    }
}
