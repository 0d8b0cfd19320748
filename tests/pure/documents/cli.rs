//! The reference of the command line (`docs/cli.md`), generated from the arguments.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};
use stockade::cli::Arguments;

const HEAD: &str = "\
# The command line

Generated from the program's own arguments; `tests/pure/documents/cli.rs` keeps it so. `stockade COMMAND --help` and
`stockade man` show the same.
";

/// The whole page.
pub(crate) fn reference() -> String {
    let mut program = Arguments::command();
    program.build();
    let shared = shared_flags(&program);
    let mut page = HEAD.to_owned();
    if let Some(after) = program.get_after_help() {
        let _ = write!(page, "\n{after}\n");
    }
    page.push_str("\n## Flags of `run`, `call`, `mcp` and `learn`\n\n");
    for flag in &shared {
        page.push_str(flag);
    }
    for command in commands(&program) {
        section(command, "stockade", &shared, &mut page);
    }
    page
}

/// The subcommands, without `help`.
fn commands(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|command| command.get_name() != "help")
}

/// The items of the flags that all of these subcommands have in the same words.
fn shared_flags(program: &Command) -> Vec<String> {
    let items = |name: &str| items(program.find_subcommand(name).unwrap());
    let others = ["call", "mcp", "learn"].map(items);
    let mut found = items("run");
    found.retain(|item| others.iter().all(|list| list.contains(item)));
    found
}

/// One item for each argument of the command.
fn items(command: &Command) -> Vec<String> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .map(item)
        .collect()
}

/// An argument: how it is written, what it does, what it takes.
fn item(arg: &Arg) -> String {
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    let value = arg.get_value_names().map_or_else(
        || arg.get_id().as_str().to_uppercase(),
        |names| {
            names
                .iter()
                .map(clap::builder::Str::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        },
    );
    let mut written = Vec::new();
    written.extend(arg.get_short().map(|short| format!("-{short}")));
    written.extend(arg.get_long().map(|long| format!("--{long}")));
    let mut name = written.join(", ");
    if arg.is_positional() {
        name = value;
    } else if takes_value {
        let _ = write!(name, " <{value}>");
    }
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut item = format!("- `{name}`: {}", help.split_whitespace().collect::<Vec<_>>().join(" "));
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(item, " (default: `{}`)", defaults.join(" "));
    }
    item.push('\n');
    if takes_value {
        for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
            let _ = match value.get_help() {
                Some(help) => writeln!(item, "  - `{}`: {help}", value.get_name()),
                None => writeln!(item, "  - `{}`", value.get_name()),
            };
        }
    }
    item
}

/// The section of a command, and those of the commands below it.
fn section(command: &Command, before: &str, shared: &[String], page: &mut String) {
    let name = format!("{before} {}", command.get_name());
    let _ = write!(page, "\n## `{name}`\n\n");
    if let Some(about) = command.get_about() {
        let _ = writeln!(page, "{about}.");
    }
    let usage = command.clone().render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim());
    let own = items(command);
    let (common, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|item| shared.contains(item));
    if !own.is_empty() {
        let _ = write!(page, "\n{}", own.concat());
    }
    if common.len() == shared.len() {
        page.push_str("\nIt also has [the flags above](#flags-of-run-call-mcp-and-learn).\n");
    } else if !common.is_empty() {
        let _ = write!(page, "\nAs above:\n\n{}", common.concat());
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    for below in commands(command) {
        section(below, &name, shared, page);
    }
}
