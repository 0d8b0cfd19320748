//! Variables whose value a shell acts upon by itself: to set one is to do more than to keep a text.
//!
//! Bash's manual lists its own under "Shell Variables"; a number given to some is evaluated as
//! arithmetic, which runs commands, and others are expanded, searched or sourced later.

use super::reading::Reading;
use super::steering::is_reviewed;
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

/// What may be set to a plain text and is nothing but that.
pub(super) fn is_ordinary(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && !SPECIAL_STARTS.iter().any(|start| name.starts_with(start))
        && !SPECIAL.split_ascii_whitespace().any(|special| special == name)
}

/// Whether text in this locale is read as it is read here: some encodings hide a quote in a letter.
pub(super) fn is_plain_locale(value: &Word) -> bool {
    value.literal().is_some_and(|value| {
        let encoding = value.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        matches!(value, "" | "C" | "POSIX") || value.contains('.') && matches!(encoding.as_str(), "utf8" | "utf-8")
    })
}

impl Reading {
    /// Takes the setting of a variable; `value` where it is known.
    pub(super) fn assign(&mut self, shown: String, name: &str, value: Option<&Word>) {
        let locale = name == "LANG" || name.starts_with("LC_");
        if !is_ordinary(name) || locale && !value.is_some_and(is_plain_locale) {
            self.doubt(format!("setting {name} changes what the shell does"));
        }
        self.values.extend(
            value
                .cloned()
                .or_else(|| shown.contains('=').then(|| Word::Dynamic(shown.clone()))),
        );
        if value.is_some_and(|value| is_reviewed(name, value)) {
            self.steered = true;
        } else {
            self.assignments.push(shown);
        }
    }
}
