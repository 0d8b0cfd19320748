//! The programs and files that a command names.

use std::ffi::OsStr;

use super::analysis::{Analysis, SimpleCommand};
use super::inline;
use super::matching::base_name;
use super::programs::is_interpreter;
use super::word::Word;

/// The programs and files that a command names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The programs that it starts: names that are searched in PATH, and paths. Builtins are among them.
    pub programs: Vec<String>,
    /// The words that may name a file: arguments, redirections, scripts, values of variables.
    pub files: Vec<String>,
    /// The words of `files` that an interpreter gets. It runs the content of a directory among them.
    pub executed: Vec<String>,
    /// Whether it may change its directory.
    pub changes_directory: bool,
    /// Why it may name files that are not in `files`; `None` where it names no others.
    pub unresolved: Option<String>,
    /// Why its programs may run something else the next time, though the words are the same; `None` where they do not.
    pub hidden: Option<String>,
}

/// The names in a shell line.
pub fn names_of_line(line: &str) -> Names {
    names(Analysis::of_line(line))
}

/// The names in a command that is given as words.
pub fn names_of_argv<S: AsRef<OsStr>>(argv: &[S]) -> Names {
    names(Analysis::of_argv(argv))
}

fn names(analysis: Analysis) -> Names {
    let mut names = Names {
        changes_directory: analysis.changes_directory,
        hidden: inline::hides_a_name(&analysis),
        // A line that is not understood may name more.
        unresolved: analysis.doubt,
        ..Names::default()
    };
    for command in &analysis.commands {
        names.command(command);
    }
    for script in &analysis.scripts {
        names.words(&script.words);
    }
    names.words(&analysis.inputs);
    names.words(&analysis.outputs);
    names.words(&analysis.values);
    names
}

impl Names {
    /// Why a yes cannot be remembered for it; `None` where it can.
    pub fn why_not_remembered(&self) -> Option<String> {
        self.unresolved.clone().or_else(|| self.hidden.clone())
    }

    fn command(&mut self, command: &SimpleCommand) {
        self.words(&command.inputs);
        self.words(&command.outputs);
        let Some((name, rest)) = command.words.split_first() else {
            return;
        };
        if let Some(name) = name.literal() {
            self.programs.push(name.to_owned());
            if is_interpreter(base_name(name)) {
                self.executed
                    .extend(rest.iter().filter_map(Word::literal).map(str::to_owned));
            }
            if reads_no_file(name) {
                self.files
                    .extend(rest.iter().filter_map(Word::literal).map(str::to_owned));
                return;
            }
            // Relative paths that follow may be relative to an unknown directory.
            let is_known = |word: &Word| word.literal().is_some_and(|word| !word.starts_with('-'));
            if matches!(name, "cd" | "chdir" | "pushd" | "popd") && !rest.iter().any(is_known) {
                self.unresolved
                    .get_or_insert_with(|| format!("where {name} leads is known only when it runs"));
            }
        }
        if name.literal() == Some("find") && rest.iter().any(|word| matches!(word.shown(), "-execdir" | "-okdir")) {
            self.unresolved
                .get_or_insert_with(|| "where find runs a command is known only when it runs".to_owned());
        }
        self.words(&command.words);
    }

    fn words(&mut self, words: &[Word]) {
        for word in words {
            match word {
                Word::Literal(text) => self.files.push(text.clone()),
                Word::Dynamic(text) => {
                    self.unresolved
                        .get_or_insert_with(|| format!("what `{text}` names is known only when it runs"));
                }
            }
        }
    }
}

/// Whether the builtin uses its arguments as text, not as file names.
fn reads_no_file(name: &str) -> bool {
    matches!(
        name,
        "echo"
            | "printf"
            | "test"
            | "["
            | ":"
            | "true"
            | "false"
            | "exit"
            | "return"
            | "shift"
            | "wait"
            | "kill"
            | "sleep"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_that_a_word_names() {
        for (line, file) in [
            ("sh deploy.sh", "deploy.sh"),
            ("python < deploy.py", "deploy.py"),
            ("{ python; } < deploy.py", "deploy.py"),
            ("x=$(<deploy.sh)", "deploy.sh"),
            ("if true; then cat a | python - <deploy.py; fi", "deploy.py"),
            ("(python -m x) 3<deploy.py", "deploy.py"),
            ("env sh ./deploy.sh", "./deploy.sh"),
            ("bash -c 'python < deploy.py'", "deploy.py"),
            ("CC=./cc make", "./cc"),
            ("CC='./cc' make", "./cc"),
            ("CC=\"sh ./cc\" make", "sh ./cc"),
            ("env CC=./cc make", "./cc"),
            ("for CC in ./cc; do make; done", "./cc"),
            ("A=(./cc); make", "./cc"),
            ("perl <<< ./cc", "./cc"),
            ("perl <<'E'\n./cc\nE\n", "./cc\n"),
        ] {
            let names = names_of_line(line);
            assert!(names.files.iter().any(|found| found == file), "{line}: {names:?}");
        }
    }

    #[test]
    fn what_may_name_another_file_is_not_resolved() {
        for line in [
            "sh $PWD/deploy.sh",
            "sh deplo{y,}.sh",
            "sh dep*.sh",
            "sh ~/deploy.sh",
            "bash < $X",
            "{ bash; } < $X",
            "bash < deploy.sh",
            "eval 'sh deploy.sh'",
            "strace -o x sh -c deploy",
            "ls # \u{1}",
            "cd; sh deploy.sh",
            "cd -; sh deploy.sh",
            "find . -exec sh {} \\;",
            "ls | xargs sh",
            "PATH=.:$PATH deploy",
            ". ./env && ls",
            "env -i deploy",
            "env -u PATH deploy",
            "bash -lc 'sh deploy.sh'",
            "find . -execdir sh ./deploy.sh ;",
            "$X",
            "CC=$PWD/cc make",
            "CC=\"$PWD/cc\" make",
            "CC=`pwd`/cc make",
            "CC=~/cc; make",
            "env CC=$PWD/cc make",
            "A=($PWD/cc); make",
            "for CC in */cc; do make; done",
            "perl <<< \"$PWD/cc\"",
            "perl <<E\n$PWD/cc\nE\n",
            "exec -c sh -c deploy",
            "exec -l bash -c deploy",
            "exec -a -bash bash -c deploy",
            "command -p deploy",
            "sudo deploy",
            "doas deploy",
        ] {
            assert!(names_of_line(line).unresolved.is_some(), "{line}");
        }
        assert!(names_of_line(&"x".repeat(20_000)).unresolved.is_some());
        let deep = format!("{}true{}", "(".repeat(40), ")".repeat(40));
        assert!(names_of_line(&deep).unresolved.is_some());
    }

    #[test]
    fn what_names_no_other_file_is_resolved() {
        for line in [
            "git status",
            "for i in 1 2; do echo $i; done",
            "cd sub && sh deploy.sh",
            "echo \"$HOME\" && make",
            "python deploy.py",
            "printf %s \"$X\" | wc -l",
        ] {
            assert_eq!(names_of_line(line).why_not_remembered(), None, "{line}");
        }
    }

    #[test]
    fn what_an_interpreter_is_given_is_run() {
        for (line, word) in [
            ("python3 app", "app"),
            ("env X=1 /usr/bin/python3.12 -B app", "app"),
            ("cd sub && java -cp classes Main", "classes"),
            ("sh -c 'node .'", "."),
        ] {
            let names = names_of_line(line);
            assert!(names.executed.iter().any(|found| found == word), "{line}: {names:?}");
        }
        assert_eq!(names_of_line("cd sub && ls src; pytest tests").executed, [""; 0]);
    }

    #[test]
    fn the_programs_of_a_line_are_those_that_it_starts() {
        let programs = |line| names_of_line(line).programs;
        assert_eq!(programs("git log | head; env A=1 ./x y"), ["git", "head", "env", "./x"]);
        assert_eq!(programs("bash -c 'ls -l'"), ["bash", "ls"]);
        assert_eq!(names_of_argv(&["xargs", "cat"]).programs, ["xargs", "cat"]);
    }
}
