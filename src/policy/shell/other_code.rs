//! Programs that run what their files or arguments say: a rule that names one answers for all of that.

use std::ffi::OsStr;

use super::analysis::Analysis;
use super::matching::base_name;
use super::programs::{is_build_tool, is_interpreter, is_opaque, is_shell, runs_on_demand};
use super::wrapper::is_wrapper;

/// Whether the program of a pattern is a shell, an interpreter, a build tool, or one that starts others.
pub fn runs_other_code(pattern: &[String]) -> bool {
    pattern
        .first()
        .is_some_and(|program| runs_its_arguments(program) || is_build_tool(base_name(program)))
}

/// Whether the program runs what its arguments say: a shell, an interpreter, one that starts others.
fn runs_its_arguments(program: &str) -> bool {
    let name = base_name(program);
    is_shell(name) || is_opaque(name) || is_interpreter(name) || is_wrapper(name) || runs_on_demand(name)
}

/// The words of a line that is one command and nothing else, all of them known: what other commands can be said to begin with, too.
/// None of a program that runs what its arguments say.
pub fn sole_command_of_line(line: &str) -> Option<Vec<String>> {
    let words = sole_command(&Analysis::of_line(line))?;
    line.trim_start().starts_with(words.first()?).then_some(words)
}

/// The same of a command given as words.
pub fn sole_command_of_argv<S: AsRef<OsStr>>(argv: &[S]) -> Option<Vec<String>> {
    let words = sole_command(&Analysis::of_argv(argv))?;
    let own = argv.iter().map(AsRef::as_ref);
    own.eq(words.iter().map(OsStr::new)).then_some(words)
}

fn sole_command(analysis: &Analysis) -> Option<Vec<String>> {
    let Analysis {
        commands,
        scripts,
        assignments,
        has_control,
        values,
        outputs,
        inputs,
        changes_directory,
        doubt,
    } = analysis;
    let [command] = commands.as_slice() else { return None };
    let is_bare = scripts.is_empty()
        && assignments.is_empty()
        && values.is_empty()
        && outputs.is_empty()
        && inputs.is_empty()
        && doubt.is_none()
        && !has_control
        && !changes_directory
        && !command.is_control
        && command.inputs.is_empty()
        && command.outputs.is_empty();
    let words: Option<Vec<String>> = command
        .words
        .iter()
        .map(|word| word.literal().map(str::to_owned))
        .collect();
    words.filter(|words| is_bare && words.first().is_some_and(|program| !runs_its_arguments(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_one_command_has_its_words() {
        for (line, words) in [
            ("git push origin main", vec!["git", "push", "origin", "main"]),
            ("git commit -m 'fix x'", vec!["git", "commit", "-m", "fix x"]),
            ("  ls", vec!["ls"]),
        ] {
            assert_eq!(sole_command_of_line(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn what_is_more_than_one_command_or_not_known_has_none() {
        for line in [
            "",
            "cd x && git push",
            "git push; id",
            "git push > x",
            "git push < x",
            "A=1 git push",
            "git $X",
            "$GIT push",
            "echo $(id)",
            "for i in 1 2; do git push; done",
            "{ git push; }",
            "bash x.sh",
            "python3 x.py",
            "env git push",
            "nice git push",
            "xargs git push",
            "sudo git push",
            "awk 1 data",
            "sed p data",
            "vim x",
            "tar xf x.tar",
            "git push <<< x",
            "exit",
            "! git push",
        ] {
            assert_eq!(sole_command_of_line(line), None, "{line}");
        }
        assert_eq!(sole_command_of_argv(&["git", "push"]).unwrap(), ["git", "push"]);
        assert_eq!(sole_command_of_argv(&["env", "git", "push"]), None);
        assert_eq!(sole_command_of_argv::<&str>(&[]), None);
    }
}
