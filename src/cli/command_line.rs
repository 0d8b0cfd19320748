//! Parses the command line.

use std::ffi::OsString;

use clap::{Args, Command, Error, FromArgMatches, Parser};

use super::args::{Arguments, RunArgs, Subcommand};

/// Parses a command line.
///
/// Building all subcommands takes longer than parsing one. So `run`, the most frequent, is tried alone first; what that cannot parse goes
/// to the full parser, which has the help and the errors.
pub(super) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Arguments, Error> {
    let line: Vec<OsString> = line.into_iter().collect();
    match line.split_first() {
        Some((_, rest)) if rest.first().is_some_and(|argument| argument == "run") => {
            parse_run(rest).or_else(|_| Arguments::try_parse_from(&line))
        }
        Some(_) | None => Arguments::try_parse_from(&line),
    }
}

fn parse_run(line: &[OsString]) -> Result<Arguments, Error> {
    let matches = RunArgs::augment_args(Command::new("run")).try_get_matches_from(line)?;
    let subcommand = Subcommand::Run(Box::new(RunArgs::from_arg_matches(&matches)?));
    Ok(Arguments { subcommand })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn shown(arguments: Result<Arguments, Error>) -> String {
        arguments.map_or_else(|error| error.to_string(), |arguments| format!("{arguments:?}"))
    }

    #[test]
    fn run_alone_parses_as_it_does_among_all_subcommands() {
        let lines: [&[&str]; 14] = [
            &["run"],
            &["run", "--", "true"],
            &["run", "-c", "make && ./x"],
            &[
                "run", "--ro", "a", "--rw", "b", "--deny", "c", "--net", "off", "--", "run", "--help",
            ],
            &["run", "--env", "A=1", "--", "env"],
            &["run", "--env", "=1", "--", "env"],
            &["run", "--backend", "nothing", "--", "true"],
            &["run", "--backend", "landlock", "--explain", "--json", "--", "true"],
            &["run", "--help"],
            &["run", "-h"],
            &["run", "--version"],
            &["run", "help"],
            &["run", "--presett", "workspace-write", "--", "true"],
            &["run", "-c", "x", "--", "y"],
        ];
        for arguments in lines {
            let line = || ["stockade"].iter().chain(arguments).map(OsString::from);
            assert_eq!(
                shown(parse(line())),
                shown(Arguments::try_parse_from(line())),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn run_accepts_arguments_that_are_not_utf8() {
        let odd = || OsString::from_vec(b"\xff".to_vec());
        let line = || {
            ["stockade", "run", "--ro"]
                .map(OsString::from)
                .into_iter()
                .chain([odd(), "--".into(), odd()])
        };
        assert_eq!(shown(parse(line())), shown(Arguments::try_parse_from(line())));
        assert!(parse_run(&line().skip(1).collect::<Vec<_>>()).is_ok());
    }

    #[test]
    fn other_lines_are_parsed_by_the_full_parser() {
        for arguments in [
            &[][..],
            &["stockade"],
            &["stockade", "runn"],
            &["stockade", "schema"],
            &["stockade", "--", "run"],
        ] {
            let line = || arguments.iter().map(OsString::from);
            assert_eq!(
                shown(parse(line())),
                shown(Arguments::try_parse_from(line())),
                "{arguments:?}"
            );
        }
    }
}
