//! Words that are text of another program, in which a name may be written so that it is not found.
//!
//! `python3 -c`, `perl -e`, an awk program and an alias of git are texts. What they name is looked for as in every word, and
//! not found where an escape spells a letter of it (`\\x78`), or where a shell, or the program, fills it in (`$PWD/x`). A yes
//! for the session is to what a line names, so there is none for such a line. A word is no text because it has a blank: whatever may be one
//! counts.

use super::matching::base_name;
use super::reading::{Reading, Simple};
use super::unknown::is_interpreter;
use super::word::Word;

/// Why some text in the line may name a file that is not found in it.
pub(super) fn hides_a_name(reading: &Reading) -> Option<String> {
    let of_commands = reading.commands.iter().find_map(of_command);
    let runs_text = reading
        .commands
        .iter()
        .filter_map(|command| command.words.first()?.literal())
        .any(|name| !matches!(Reads::of(base_name(name)), Reads::Words | Reads::Nothing));
    // Values of variables, and documents: what is run may read them as its program, or hand them to a shell.
    let of_values = reading.values.iter().filter_map(Word::literal);
    let mut of_values = of_values.filter(|text| is_filled_in(text) || (runs_text && text.contains('\\')));
    let of_values = of_commands.or_else(|| of_values.next().map(told));
    of_values.or_else(|| {
        let mut names = reading.assignments.iter().filter_map(|text| text.split('=').next());
        let name = names.find(|name| name.starts_with("GIT_CONFIG") || LEADS.contains(name))?;
        Some(format!("what `{name}` has programs read is known only when they run"))
    })
}

/// Variables that name directories of what interpreters load: which file is loaded no text says.
const LEADS: &[&str] = &[
    "PERL5LIB",
    "PERLLIB",
    "PERL5OPT",
    "PYTHONPATH",
    "PYTHONHOME",
    "RUBYLIB",
    "RUBYOPT",
    "NODE_PATH",
    "NODE_OPTIONS",
    "CLASSPATH",
    "LUA_PATH",
    "LUA_CPATH",
    "AWKPATH",
    "TCLLIBPATH",
    "R_LIBS",
    "PHP_INI_SCAN_DIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
];

/// What a program does with the words that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It takes them for what they are.
    Nothing,
    /// Names, patterns and options. One may be a line for a shell.
    Words,
    /// An interpreter, which may be given its program.
    Program,
    /// A program of awk: `$1` is a field.
    Awk,
    /// A script of sed, where `.` is often behind a backslash.
    Sed,
    /// Lines for shells in many a place, as git and make have them, or another program with its words (`busybox awk`).
    Lines,
}

impl Reads {
    fn of(name: &str) -> Self {
        match name {
            "echo" | "printf" | "test" | "[" | ":" | "true" | "false" | "exit" | "return" | "shift" | "wait"
            | "kill" | "sleep" => Self::Nothing,
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" => Self::Awk,
            "sed" | "gsed" => Self::Sed,
            "git" | "make" | "gmake" | "tar" | "bsdtar" | "rsync" | "vi" | "vim" | "nvim" | "ex" | "ed" | "emacs"
            | "sqlite3" | "psql" | "mysql" | "m4" | "gnuplot" | "busybox" | "toybox" => Self::Lines,
            name if is_interpreter(name) => Self::Program,
            _ => Self::Words,
        }
    }
}

fn of_command(command: &Simple) -> Option<String> {
    let (name, rest) = command.words.split_first()?;
    let reads = name.literal().map_or(Reads::Lines, |name| Reads::of(base_name(name)));
    let given = || rest.iter().filter_map(Word::literal);
    let is_inline = reads == Reads::Program && given().any(gives_a_program);
    let hides = |text: &&str| match reads {
        Reads::Nothing => false,
        // A program puts names together in more ways than can be read.
        Reads::Program if is_inline => true,
        Reads::Words | Reads::Program => is_filled_in(text),
        Reads::Awk => {
            !text.starts_with("-F") && (text.contains(['\\', '`', '|']) || runs_a_line(text) || fills_in_a_string(text))
        }
        Reads::Sed => is_filled_in(text) || spells_a_letter(text) || executes(text),
        Reads::Lines => text.contains('\\') || is_filled_in(text) || hands_on_a_line(text),
    };
    given().find(hides).map(told)
}

fn told(text: &str) -> String {
    const MOST: usize = 60;
    let short: String = text.chars().take(MOST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("what `{short}{more}` names is known only when it runs")
}

/// Whether an option may be followed by a program, or hold one: `-c`, `-e`, `-ne`, `--eval=…`.
fn gives_a_program(word: &str) -> bool {
    if let Some(long) = word.strip_prefix("--") {
        return ["eval", "print", "exec", "run", "init"]
            .iter()
            .any(|name| long.starts_with(name));
    }
    let short = word
        .strip_prefix('-')
        .is_some_and(|letters| letters.contains(['c', 'e', 'E', 'r', 'R', 'B', 'p', 'x']));
    short || matches!(word, "eval" | "-" | "repl")
}

/// Whether a shell, make or git would put something in the place of a part: `$x`, `${x}`, `$(x)`, a backquote.
fn is_filled_in(text: &str) -> bool {
    let begins = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '{' | '(' | '@' | '*');
    let mut behind = text.split('$').skip(1);
    text.contains('`') || behind.any(|rest| rest.starts_with(begins))
}

/// Whether a dollar stands in quotes: awk hands strings to a shell.
fn fills_in_a_string(text: &str) -> bool {
    text.split('"').skip(1).step_by(2).any(|string| string.contains('$'))
}

/// Whether awk hands a string to a shell, or loads what runs.
fn runs_a_line(text: &str) -> bool {
    ["system", "getline", "@load"].iter().any(|word| text.contains(word))
}

/// Whether GNU sed runs a line or what it found: the command `e`, or the flag of `s`.
fn executes(text: &str) -> bool {
    let mut before = '\n';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let behind = letters.peek().copied().unwrap_or('\n');
        let begins = before.is_whitespace() || before.is_ascii_digit() || ";{}$!/,#|@:%".contains(before);
        if letter == 'e'
            && begins
            && (behind.is_whitespace() || ";}gpiImMw".contains(behind) || behind.is_ascii_digit())
        {
            return true;
        }
        before = letter;
    }
    false
}

/// Whether a program hands a part of the word to a shell: an alias of git, an action of tar, a line of vi.
fn hands_on_a_line(text: &str) -> bool {
    text.contains('!')
        || ["exec=", "command=", "--rsh", "system(", "hookspath", "hooksPath"]
            .iter()
            .any(|word| text.contains(word))
}

/// Whether GNU sed reads a character by its number.
fn spells_a_letter(text: &str) -> bool {
    let mut behind = text.split('\\').skip(1);
    behind.any(|rest| rest.starts_with(['x', 'd', 'o', 'c']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_spells_or_fills_in_a_name_hides_it() {
        for line in [
            "git -c alias.z='!sh ${PWD}/x' z",
            "git -c alias.z='!sh \\x' z",
            "git -c alias.z='!sh `pwd`/x' z",
            "perl -e 'system(\"sh \\x78\")'",
            "perl -ne 'system(\"sh $PWD/x\")' y",
            "awk 'BEGIN{system(\"sh \\170\")}'",
            "awk 'BEGIN{system(\"sh $PWD/x\")}'",
            "env busybox awk 'BEGIN{system(\"sh \\170\")}'",
            "python3 -c \"exec(open('x\\x2epy').read())\"",
            "python3 -Bc 'open(\"\\x78\")'",
            "ruby -e 'load \"\\x78\"'",
            "node --eval 'require(\"./\\x78\")'",
            "node -p 'require(`./x`)'",
            "php -r 'include \"\\x78\";'",
            "sh -c 'python3 -c \"open(\\\"\\\\x78\\\")\"'",
            "python3 <<'E'\nopen('\\x78')\nE\n",
            "GIT_SSH_COMMAND='sh $PWD/x' git fetch",
            "GIT_SSH_COMMAND='sh \\x' git fetch",
            "tar cf a --checkpoint-action='exec=sh $PWD/x' b",
            "rg --pre 'sh $PWD/x' y",
            "sed '1e sh \\x78' y",
            "sed '1e sh $PWD/x' y",
            "make 'CC=$(X)/cc'",
            "python3 -c 'import subprocess; subprocess.run(\"sh *.sh\", shell=True)'",
            "perl -e 'system(\"sh ?.sh\")'",
            "perl -0777 -e 'exec q(sh [x].sh)'",
            "git -c alias.z='!sh ?.sh' z",
            "git -c alias.z='!sh x\"\".sh' z",
            "git -c core.hooksPath=sub commit -m x",
            "awk 'BEGIN{system(\"sh ?.sh\")}'",
            "awk 'BEGIN{\"sh ?.sh\" | getline}'",
            "sed -n '1e sh ?.sh' f",
            "sed 's/a/sh ?.sh/e' f",
            "tar cf /dev/null --checkpoint=1 --checkpoint-action='exec=sh ?.sh' f",
            "vi -es -c '!sh ?.sh' -c q f",
            "PERL5LIB=sub perl x.pl",
            "GIT_CONFIG_PARAMETERS=\"'alias.z=!sh ?.sh'\" git z",
        ] {
            assert!(hides_a_name(&Reading::of_line(line)).is_some(), "{line}");
        }
    }

    #[test]
    fn text_that_says_what_it_names_hides_nothing() {
        for line in [
            "python3 x.py 'a\\.b'",
            "awk -F'\\t' '{print $1, $NF}' x",
            "sed -e 's/\\./,/' -e 's/a$/b/' x",
            "sed -n '1,5p' x",
            "sed -i 's/one/three/g' x",
            "tar czf a.tgz src",
            "grep -E '\\bfoo\\b$' x",
            "git commit -m 'a plain word'",
            "git grep 'a$'",
            "echo 'costs $5' '\\n'",
            "printf '%s\\n' x",
            "make -j4 CC=gcc",
            "cat <<'E'\na\\b\nE\n",
        ] {
            assert_eq!(hides_a_name(&Reading::of_line(line)), None, "{line}");
        }
    }
}
