//! What a program is given in a line, for words that are said beside it. No rule is judged by it.

use std::ffi::OsStr;

use super::matching::base_name;
use super::reading::Reading;
use super::word::Word;

/// The arguments of each simple command of a line that runs a program of this name; what is known only when it runs is empty.
pub fn arguments_of_line(line: &str, program: &str) -> Vec<Vec<String>> {
    arguments(&Reading::of_line(line), program)
}

/// The same of a command given as words.
pub fn arguments_of_argv<S: AsRef<OsStr>>(argv: &[S], program: &str) -> Vec<Vec<String>> {
    let word = |word: &S| match word.as_ref().to_str() {
        Some(text) => Word::Literal(text.to_owned()),
        None => Word::Dynamic(String::new()),
    };
    arguments(&Reading::of_words(argv.iter().map(word).collect()), program)
}

fn arguments(reading: &Reading, program: &str) -> Vec<Vec<String>> {
    let commands = reading.commands.iter().filter_map(|command| {
        let (name, rest) = command.words.split_first()?;
        let is_meant = name.literal().is_some_and(|name| base_name(name) == program);
        is_meant.then(|| {
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
