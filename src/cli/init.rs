//! `stockade init` and `stockade schema`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use super::args::InitArgs;
use super::error::{CliError, print};
use super::exit::Exit;
use crate::config;
use crate::policy::path::display;

/// Writes the commented config, never over an existing file.
pub(super) fn init(args: &InitArgs) -> Result<Exit, CliError> {
    let shown = display(&args.file);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.file)
        .and_then(|mut file| file.write_all(config::TEMPLATE.as_bytes()));
    match written {
        Ok(()) if args.json => print(&format!("{}\n", serde_json::json!({"wrote": shown}))).map(|()| Exit::Success),
        Ok(()) => {
            print(&format!(
                "wrote {shown}\nread it, change it, then: stockade check {shown} && stockade trust {shown}\n"
            ))?;
            Ok(Exit::Success)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(CliError::failed(format!("{shown} exists already; it was left as it is")).remedy("name another file"))
        }
        Err(error) => Err(CliError::failed(format!("failed to write {shown}: {error}"))),
    }
}

/// Prints the JSON Schema of the config.
pub(super) fn schema() -> Result<Exit, CliError> {
    let text = serde_json::to_string_pretty(&config::schema()).map_err(CliError::failed)?;
    print(&format!("{text}\n"))?;
    Ok(Exit::Success)
}
