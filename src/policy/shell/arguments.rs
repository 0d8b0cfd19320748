//! The arguments of a program in a line, for hints. Rules do not use them.

use std::ffi::OsStr;

use super::analysis::Analysis;
use super::matching::base_name;

/// The arguments of each simple command of a line that runs a program of this name. An expansion counts as an empty argument.
pub fn arguments_of_line(line: &str, program: &str) -> Vec<Vec<String>> {
    arguments(&Analysis::of_line(line), program)
}

/// The same for a command that is given as words.
pub fn arguments_of_argv<S: AsRef<OsStr>>(argv: &[S], program: &str) -> Vec<Vec<String>> {
    arguments(&Analysis::of_argv(argv), program)
}

fn arguments(analysis: &Analysis, program: &str) -> Vec<Vec<String>> {
    let commands = analysis.commands.iter().filter_map(|command| {
        let (name, rest) = command.words.split_first()?;
        let is_program = name.literal().is_some_and(|name| base_name(name) == program);
        is_program.then(|| {
            rest.iter()
                .map(|word| word.literal().unwrap_or_default().to_owned())
                .collect()
        })
    });
    commands.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_wherever_it_stands() {
        let commit = vec![vec!["commit".to_owned(), "-m".to_owned(), "a b".to_owned()]];
        for line in [
            "git commit -m 'a b'",
            "cd x && /usr/bin/git commit -m 'a b' | cat",
            "bash -c \"git commit -m 'a b'\"",
        ] {
            assert_eq!(arguments_of_line(line, "git"), commit, "{line}");
        }
        assert_eq!(arguments_of_argv(&["git", "commit", "-m", "a b"], "git"), commit);
        assert_eq!(arguments_of_line("git \"$x\"", "git"), [[String::new()]]);
        assert!(arguments_of_line("echo git commit; gitk", "git").is_empty());
    }
}
