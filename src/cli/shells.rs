//! `stockade completions` and `stockade man`, generated from the arguments.

use std::path::Path;

use clap::CommandFactory;

use super::args::Arguments;
use super::error::{CliError, print};
use super::exit::Exit;

/// Prints a completion script.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "stockade", &mut script);
    print(&String::from_utf8(script).map_err(CliError::failed)?)?;
    Ok(Exit::Success)
}

/// Prints the manual page, or writes all of them.
pub(super) fn man(directory: Option<&Path>) -> Result<Exit, CliError> {
    if let Some(directory) = directory {
        clap_mangen::generate_to(Arguments::command(), directory).map_err(CliError::failed)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command())
            .render(&mut page)
            .map_err(CliError::failed)?;
        print(&String::from_utf8(page).map_err(CliError::failed)?)?;
    }
    Ok(Exit::Success)
}
