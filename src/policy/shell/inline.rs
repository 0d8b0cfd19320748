//! Arguments that are code of another language, in which a file name can be hidden.
//!
//! `python3 -c`, `perl -e`, awk and an alias of git take code. A search for file names misses one with an escaped letter
//! (`\\x78`), and one that a shell or the program expands (`$PWD/x`, `?.sh`). An approval for the session is bound to the names
//! in a line, so such a line gets none. Few programs are known to take arguments as data; any other may pass one to a shell.

use super::analysis::{Analysis, SimpleCommand};
use super::matching::base_name;
use super::nested_shell::is_strictness;
use super::programs::{Interpreter, interpreter, is_shell};
use super::sed;
use super::word::Word;
use super::wrapper::is_wrapper;

/// Why the line may name a file that its words do not show; `None` where it does not.
pub(super) fn hides_a_name(analysis: &Analysis) -> Option<String> {
    let of_commands = analysis.commands.iter().find_map(of_command);
    let runs_text = analysis
        .commands
        .iter()
        .filter_map(|command| command.words.first()?.literal())
        .any(|path| !matches!(Reads::of(path), Reads::Words | Reads::Nothing | Reads::Command));
    // A command may run here-documents and values of loops as code, or pass them to a shell.
    let of_values = analysis.values.iter().filter_map(Word::literal);
    let mut of_values = of_values.filter(|text| is_filled_in(text) || (runs_text && text.contains('\\')));
    let of_values = of_commands.or_else(|| of_values.next().map(reason));
    of_values.or_else(|| {
        let name = analysis.assignments.first()?.split(['=', '+']).next()?;
        Some(format!("what `{name}` has programs do is known only when they run"))
    })
}

/// The way in which a program uses its arguments.
#[derive(Debug, Clone, Copy)]
enum Reads {
    /// As data.
    Nothing,
    /// As a command. That is judged by itself.
    Command,
    /// As names, patterns and options. One of them may be a shell line.
    Words,
    /// As a script, or as code. The program is an interpreter, and may read code from its input.
    Script(&'static Interpreter),
    /// As code, in more ways than are known here.
    Program,
    /// As a program of awk, where `$1` is a field.
    Awk,
    /// As a script of sed, where `.` often follows a backslash.
    Sed,
    /// As words, some of which are shell lines.
    Lines,
    /// As git does: words, shell lines and settings.
    Git,
}

impl Reads {
    fn of(path: &str) -> Self {
        let name = base_name(path);
        match name {
            _ if is_wrapper(name) => Self::Command,
            _ if DATA.split_ascii_whitespace().any(|known| known == name) => Self::Nothing,
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" => Self::Awk,
            "sed" | "gsed" => Self::Sed,
            "git" => Self::Git,
            "make" | "gmake" | "tar" | "bsdtar" | "gtar" | "rsync" | "npm" | "yarn" | "pnpm" => Self::Lines,
            "vi" | "vim" | "nvim" | "ex" | "ed" | "emacs" | "sqlite3" | "psql" | "mysql" | "mariadb" | "m4"
            | "gnuplot" | "dc" | "R" => Self::Program,
            _ => interpreter(name).map_or(Self::Words, Self::Script),
        }
    }
}

/// Programs that neither run an argument nor pass one to a shell, except with [`OPTIONS`].
const DATA: &str = "
    echo printf test [ : true false exit return shift wait kill sleep
    grep egrep fgrep rg find ls cat head tail wc cut tr uniq cmp comm diff jq stat basename dirname mkdir rmdir touch cp mv rm ln chmod
";

/// Subcommands of git that take arguments as data.
const DATA_OF_GIT: &str = "
    add blame branch checkout commit diff grep log ls-files merge restore rev-parse show stash status switch tag
";

/// Settings of git that run nothing and name no file.
const SETTINGS: &str = "user.name user.email init.defaultbranch core.quotepath core.autocrlf commit.gpgsign";

/// Options with which a program runs or loads something, or searches elsewhere, as program names, letters and long names.
const OPTIONS: &[(&str, &str, &str)] = &[
    (
        "git",
        "",
        "exec upload-pack receive-pack open-files-in-pager extcmd tool config config-env exec-path template git-dir authors-prog",
    ),
    (
        "tar bsdtar gtar",
        "IF",
        "use-compress-program to-command checkpoint-action info-script new-volume-script rsh-command rmt-command",
    ),
    ("rsync", "e", "rsh rsync-path"),
    ("make gmake", "E", "eval"),
    ("npm yarn pnpm", "c", "call script-shell node-options"),
    ("split", "", "filter"),
    ("sort", "", "compress-program"),
    ("rg", "", "pre hostname-bin"),
    ("man", "PH", "pager html"),
    ("wget", "e", "execute use-askpass"),
    ("zip", "T", "unzip-command"),
    ("cargo", "", "config"),
    ("go", "", "toolexec vettool exec overlay"),
    (
        "gcc g++ cc c++ clang clang++",
        "",
        "B fplugin specs wrapper fpass-plugin load",
    ),
];

fn of_command(command: &SimpleCommand) -> Option<String> {
    let (path, rest) = command.words.split_first()?;
    let path = path.literal()?;
    let name = base_name(path);
    let args: Vec<&str> = rest.iter().filter_map(Word::literal).collect();
    let first = |is_hidden: &dyn Fn(&str) -> bool| args.iter().copied().find(|text| is_hidden(text)).map(reason);
    // The line after `-c` is judged by itself; its arguments are known only when it runs.
    let mut options = args
        .iter()
        .take_while(|text| text.starts_with('-') || is_strictness(text));
    let is_opened = is_shell(name) && options.any(|text| text.starts_with('-') && text.contains('c'));
    // A program at another path may do anything, whatever its name.
    let is_known = !path.contains('/')
        || ["/bin/", "/usr/bin/"]
            .iter()
            .any(|bin| path.strip_prefix(bin) == Some(name));
    let by_name = first(&|text| has_option(name, text) || !is_known && is_a_line(text));
    by_name.or_else(|| match Reads::of(path) {
        Reads::Nothing | Reads::Command => None,
        Reads::Words if is_opened => first(&is_filled_in),
        Reads::Words => first(&is_a_line),
        Reads::Script(interpreter) if interpreter.is_given_a_script(&args) => first(&is_a_line),
        Reads::Sed if sed::runs_nothing(&args) => None,
        Reads::Script(_) | Reads::Program | Reads::Sed => Some(reason(args.first().unwrap_or(&name))),
        Reads::Awk => of_awk(&args).map(reason),
        Reads::Git => of_git(&args).map(reason),
        Reads::Lines => {
            let runs = |text: &str| matches!(text, "exec" | "x" | "dlx" | "node" | "explore");
            let is_input = |text: &str| text == "-" || text.ends_with("f-") || text.ends_with("=-");
            first(&|text| match name {
                "make" | "gmake" => is_input(text) || text.contains('=') && text.contains(SPECIAL),
                "npm" | "yarn" | "pnpm" => runs(text),
                // The first word may be option letters without a dash (`tar xf`).
                _ => !text.starts_with('-') && args.first() == Some(&text) && has_option(name, &format!("-{text}")),
            })
            .or_else(|| first(&is_text))
        }
    })
}

/// Whether the word is one of the program's [`OPTIONS`]. A long name may be abbreviated.
fn has_option(program: &str, word: &str) -> bool {
    let Some(option) = word.strip_prefix('-') else {
        return false;
    };
    let options = OPTIONS
        .iter()
        .filter(|(names, ..)| names.split(' ').any(|name| name == program));
    options.into_iter().any(|(_, letters, long)| {
        let mut long = long.split(' ');
        match option.strip_prefix('-') {
            Some(name) => {
                let name = name.split('=').next().unwrap_or_default();
                !name.is_empty() && long.any(|known| known.starts_with(name))
            }
            None => option.contains(|c| letters.contains(c)) || long.any(|known| option.starts_with(known)),
        }
    })
}

/// The first argument of awk that may run something.
fn of_awk<'a>(args: &[&'a str]) -> Option<&'a str> {
    let mut is_file = false;
    let hides = |text: &&&str| {
        let is_name = std::mem::replace(&mut is_file, **text == "-f");
        let is_known = ["-F", "-v"].iter().any(|option| text.starts_with(option)) || **text == "-f";
        // awk may complete another name.
        is_name && text.rsplit_once('.').is_none_or(|(_, ending)| ending != "awk")
            || text.starts_with('-') && !is_known
            || !text.starts_with("-F")
                && (text.contains(['\\', '`', '|', '@']) || runs_a_line(text) || fills_in_a_string(text))
    };
    args.iter().find(hides).copied()
}

/// The first argument of git that may run something.
fn of_git<'a>(args: &[&'a str]) -> Option<&'a str> {
    let mut words = args.iter().copied();
    let subcommand = loop {
        let word = words.next()?;
        match word {
            "-C" => drop(words.next()),
            "-c" if words.next().is_none_or(|setting| !is_harmless(setting)) => return Some(word),
            "-c" | "-P" | "-p" | "--no-pager" | "--paginate" | "--no-optional-locks" | "--version" | "--help" => {}
            _ if word.starts_with('-') => return Some(word),
            _ => break word,
        }
    };
    let letters = match subcommand {
        "filter-branch" | "difftool" | "mergetool" | "send-email" => return Some(subcommand),
        "rebase" => "x",
        "grep" => "O",
        "clone" => "uc",
        _ => "",
    };
    let is_data = DATA_OF_GIT.split_ascii_whitespace().any(|known| known == subcommand);
    words.find(|word| {
        let option = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        option.is_some_and(|option| option.contains(|c| letters.contains(c)))
            || matches!((subcommand, *word), ("submodule", "foreach") | ("bisect", "run"))
            || !is_data && is_text(word)
    })
}

fn is_harmless(setting: &str) -> bool {
    let key = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
    key.starts_with("color.") || key.starts_with("advice.") || SETTINGS.split(' ').any(|known| known == key)
}

fn reason(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let short: String = text.chars().take(MAX_CHARS).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("what `{short}{more}` names is known only when it runs")
}

/// Characters with a meaning in a shell.
const SPECIAL: [char; 22] = [
    '*', '?', '[', ']', '{', '}', '~', '<', '>', '(', ')', '\'', '"', '$', '\\', ';', '|', '&', '`', '#', '!', '^',
];

/// Whether a shell that gets the text may use other names than those in it.
fn is_a_line(text: &str) -> bool {
    is_filled_in(text) || text.contains(char::is_whitespace) && text.contains(SPECIAL)
}

/// The same for programs that expand escapes, or run lines after a `!`.
fn is_text(text: &str) -> bool {
    text.contains(['\\', '!']) || is_a_line(text)
}

/// Whether a shell, make or git would expand a part: `$x`, `${x}`, `$(x)`, a backquote.
fn is_filled_in(text: &str) -> bool {
    let begins = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '{' | '(' | '@' | '*');
    let mut behind = text.split('$').skip(1);
    text.contains('`') || behind.any(|rest| rest.starts_with(begins))
}

/// Whether a dollar sign is inside quotes. awk may pass such a string to a shell.
fn fills_in_a_string(text: &str) -> bool {
    text.split('"').skip(1).step_by(2).any(|string| string.contains('$'))
}

/// Whether awk passes a string to a shell.
fn runs_a_line(text: &str) -> bool {
    ["system", "getline"].iter().any(|word| text.contains(word))
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
            "sed 's/.*/sh ?.sh/ge' f",
            "sed --expression='1esh ?.sh' f",
        ] {
            assert!(hides_a_name(&Analysis::of_line(line)).is_some(), "{line}");
        }
    }

    #[test]
    fn text_in_the_input_of_an_interpreter_hides_a_name() {
        for line in [
            "python3 <<'E'\nx\nE\n",
            "python3 <<< x",
            "cat x | python3",
            "cat x | python3 -",
            "cat x | perl -w",
            "python3 < x.py",
            "node /dev/stdin < x",
            "cat x | ruby /dev/fd/0",
            "cat x | php",
            "cat x | lua -",
            "cat x | tclsh",
            "cat x | R",
            "cat x | sqlite3 d",
            "cat x | make -f -",
            "cat x | make -f-",
            "cat x | make --file=-",
            "cat x | awk -f - y",
            "cat x | awk -f- y",
            "cat x | sed -f - y",
        ] {
            assert!(hides_a_name(&Analysis::of_line(line)).is_some(), "{line}");
        }
    }

    #[test]
    fn a_word_that_may_be_a_line_for_a_shell_hides_a_name() {
        for line in [
            "git -c diff.external='sh ?.sh' diff",
            "git -c core.sshCommand=x fetch",
            "git -c core.editor=x commit",
            "git --config-env=core.editor=X commit",
            "git --exec-path=sub status",
            "git --git-dir=sub status",
            "git rebase -x 'sh ?.sh' main",
            "git rebase -ix x main",
            "git rebase --exec=x main",
            "git rebase --exe x main",
            "git submodule foreach x",
            "git submodule --quiet foreach x",
            "git grep -Ox a",
            "git grep --open-files=x a",
            "git ls-remote --upload-pack=x .",
            "git fetch --upload-p=x .",
            "git clone -ux . y",
            "git clone -c core.sshCommand=x . y",
            "git push --receive-pack=x .",
            "git push --exec=x .",
            "git difftool -x x",
            "git mergetool",
            "git bisect run x",
            "git filter-branch --tree-filter x",
            "make --eval='x:; sh ?.sh'",
            "make --eval=x",
            "make 'CC=./c?'",
            "make 'SHELL=sh ?.sh'",
            "split --filter='sh ?.sh' f",
            "split --fil=./x f",
            "timeout 5 split --filter='sh ?.sh' f",
            "env nice split --filter x f",
            "npm exec -c x",
            "npm exec x",
            "npx -c 'sh ?.sh'",
            "npx x",
            "yarn exec x",
            "pnpm exec x",
            "pnpm --silent dlx x",
            "sqlite3 d '.shell sh ?.sh'",
            "foo 'sh ?.sh'",
            "foo --run='sh <x'",
            "sh -e x.sh 'sh ?.sh'",
            "sh x.sh -c 'sh ?.sh'",
            "./grep 'sh ?.sh'",
            "./env A 'sh ?.sh'",
            "sort --compress-program=x f",
            "tar cIf 'sh ?.sh' a b",
            "rsync -e x a b",
            "rg --pre=x y",
            "cargo --config=x build",
            "go test -exec=x",
            "gcc -Bsub x.c",
            "gcc -fplugin=sub/x x.c",
        ] {
            assert!(hides_a_name(&Analysis::of_line(line)).is_some(), "{line}");
        }
    }

    #[test]
    fn a_variable_that_is_not_reviewed_hides_what_it_has_programs_do() {
        for line in [
            "GIT_EXTERNAL_DIFF=x git diff",
            "env GIT_SSH=x git fetch",
            "PAGER=x man y",
            "HOME=sub git status",
            "XDG_CONFIG_HOME=sub git status",
            "GIT_EXEC_PATH=sub git status",
            "PYTHONUSERBASE=sub x",
            "npm_config_script_shell=x npm test",
            "RUSTC_WRAPPER=x cargo build",
            "env CARGO_HOME=x cargo build",
            "LUA_INIT=x lua y.lua",
            "for CC in ./cc; do make; done",
        ] {
            assert!(hides_a_name(&Analysis::of_line(line)).is_some(), "{line}");
        }
    }

    #[test]
    fn a_name_that_an_interpreter_completes_hides_what_it_runs() {
        for line in [
            "node ./x",
            "node x",
            "node --require ./x y.js",
            "node -r ./x y.js",
            "ts-node x",
            "python3 dir",
            "python3 -m mod",
            "python3 -i x.py",
            "perl -Mx y.pl",
            "ruby -rx y.rb",
            "php -B x y.php",
            "java -cp classes Main",
            "java x.jar",
            "awk -f x y",
            "awk -i x.awk y",
            "awk '@include \"x\"' y",
            "GIT_CONFIG_PARAMETERS=\"'alias.z=!sh ?.sh'\" git z",
        ] {
            assert!(hides_a_name(&Analysis::of_line(line)).is_some(), "{line}");
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
            "python3 -B x.py 'a b'",
            "python3 -V",
            "node x.js --watch",
            "perl -w x.pl",
            "java -jar x.jar",
            "awk -f x.awk y",
            "awk -v n=1 'NR == n {print}' y",
            "make -f build.mk 'CFLAGS=-O2 -g'",
            "git -C sub --no-pager log --format='%h (%s)'",
            "git -c user.name='A (B)' -c color.ui=never commit -m 'Fix \"x\"; say $why & \\n'",
            "git clean -fdx",
            "git push -u origin main",
            "git switch -c fix",
            "git rebase --continue",
            "git diff --exit-code",
            "timeout 5 grep 'a b*' x",
            "rg 'a (b|c)' x",
            "find . -name '* x' -newer y",
            "cat x | jq '.a | .b'",
            "bash -c 'ls -l; cat x'",
            "npm test",
            "npm run build -- --watch",
            "tar --exclude='*.o' -xzf a.tgz",
            "split -l 5 x",
            "cargo test -- 'a b'",
            "gcc -O2 -DBUG x.c",
            "CI=1 cargo test",
            "for i in 1 2; do make; done",
        ] {
            assert_eq!(hides_a_name(&Analysis::of_line(line)), None, "{line}");
        }
    }
}
