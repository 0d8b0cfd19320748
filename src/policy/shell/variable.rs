//! Variables whose value a shell acts upon. Setting one does more than storing a text.
//!
//! bash(1) lists its own under "Shell Variables". It evaluates some as arithmetic, which can run commands, and it expands,
//! searches or sources others later.
//!
//! A few variables need no rule: they change only how programs look and which language they use.

use super::analysis::Analysis;
use super::word::Word;

/// By line: evaluated or expanded; kept by the shell; where programs and files are found; how words
/// are divided and expanded; mail, history and completion; the loader's, beside `LD_*`.
const SPECIAL: &str = "
    PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND PROMPT_DIRTRIM ENV RANDOM SRANDOM SECONDS OPTIND OPTARG OPTERR LINENO
    HISTCMD EPOCHREALTIME EPOCHSECONDS TIMEFORMAT TMOUT FUNCNEST
    COPROC DIRSTACK EUID FUNCNAME GROUPS MAPFILE PIPESTATUS PPID SHELLOPTS SHLVL UID POSIXLY_CORRECT CHILD_MAX
    PATH CDPATH EXECIGNORE FIGNORE GLOBIGNORE GLOBSORT
    IFS IGNOREEOF INSIDE_EMACS EMACS auto_resume histchars
    MAIL MAILCHECK MAILPATH FCEDIT HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE HISTSIZE HISTTIMEFORMAT HOSTFILE
    COMPREPLY INPUTRC
    GCONV_PATH LOCPATH GLIBC_TUNABLES
";
const SPECIAL_STARTS: [&str; 4] = ["BASH", "LD_", "COMP_", "READLINE_"];

/// Variables that change only colours, sizes, languages and the amount of output of known programs.
///
/// It has no variable that names a file or a program, chooses code (`NODE_ENV`), or holds options (`*FLAGS`, `*_OPTS`).
const REVIEWED: &str = "
    CI NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CARGO_TERM_COLOR COLUMNS LINES
    LANG LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME TZ
    RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
";

/// Whether every shell only stores a plain text that this variable is set to.
fn is_ordinary(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && !SPECIAL_STARTS.iter().any(|start| name.starts_with(start))
        && !SPECIAL.split_ascii_whitespace().any(|special| special == name)
}

/// Whether the variable sets the locale (locale(7)).
fn is_locale(name: &str) -> bool {
    name == "LANG" || name.starts_with("LC_")
}

/// Whether the encoding of this locale is ASCII or UTF-8. In some others a byte of a letter is a quote.
fn is_plain_locale(value: &Word) -> bool {
    value.literal().is_some_and(|value| {
        let encoding = value.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        matches!(value, "" | "C" | "POSIX") || value.contains('.') && matches!(encoding.as_str(), "utf8" | "utf-8")
    })
}

/// Whether the variable may be set to this value without a rule. The value may name no path.
pub(super) fn is_reviewed(name: &str, value: &Word) -> bool {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.@-+,=".contains(&b))
    };
    may_be_reviewed(name) && value.literal().is_some_and(is_plain) && (!is_locale(name) || is_plain_locale(value))
}

/// Whether a loop may set the variable without a rule. No known program uses a variable in lower case, in case it is exported.
pub(super) fn is_counter(name: &str) -> bool {
    let is_lower = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_lower && is_ordinary(name)
}

/// Whether some values of the variable need no rule.
pub(super) fn may_be_reviewed(name: &str) -> bool {
    REVIEWED.split_ascii_whitespace().any(|known| known == name)
}

impl Analysis {
    /// Takes the setting of a variable; `value` where it is known.
    pub(super) fn assign(&mut self, shown: String, name: &str, value: Option<&Word>) {
        if !is_ordinary(name) || is_locale(name) && !value.is_some_and(is_plain_locale) {
            self.doubt(format!("setting {name} changes what the shell does"));
        }
        self.values.extend(
            value
                .cloned()
                .or_else(|| shown.contains('=').then(|| Word::Dynamic(shown.clone()))),
        );
        if value.is_some_and(|value| is_reviewed(name, value)) {
            self.has_control = true;
        } else {
            self.assignments.push(shown);
        }
    }
}
