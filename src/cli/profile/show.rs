//! `stockade profile show`.

use std::fmt::Write as _;

use super::args::ShowArgs;
use super::{aligned, inspected, print_json, without_backend};
use crate::cli::complain::{Complaint, print};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::tools::inspect::show::Table;

/// Prints the table.
pub(super) fn show(args: &ShowArgs) -> Result<Exit, Complaint> {
    without_backend(
        &args.policy,
        "the table is of the profile, which is the same in every backend",
    )?;
    let table = Table::of(&inspected(&args.policy, &policy::context(&args.policy.ceiling))?);
    if args.json {
        print_json(&table)?;
    } else {
        print(&text(&table))?;
    }
    Ok(Exit::Success)
}

fn text(table: &Table) -> String {
    let mut text = String::new();
    let mut section = |title: &str, body: String| {
        let body = if body.is_empty() {
            "  nothing\n".to_owned()
        } else {
            body
        };
        // Writing to a String cannot fail.
        let _infallible = write!(text, "{title}\n{body}\n");
    };
    let files = table.files.iter().map(|row| {
        let unasked = if row.unasked == row.may {
            "no question".to_owned()
        } else {
            format!("unasked: {}", row.unasked)
        };
        let may = [std::slice::from_ref(&row.may), &row.only].concat().join(", ");
        [row.path.clone(), may, unasked, row.origin.clone()]
    });
    let (shipped, own): (Vec<_>, Vec<_>) = files.partition(|[.., origin]| origin.starts_with("preset "));
    section("may be read, written, executed", aligned(&own));
    section("and by presets", aligned(&shipped));
    let denies = table.denies.iter().map(|row| {
        let takes = [std::slice::from_ref(&row.takes), &row.only].concat().join(", ");
        let when = if row.unasked_only { "unasked" } else { "always" };
        [row.target.clone(), takes, when.to_owned(), row.origin.clone()]
    });
    section("denied whatever is granted above", aligned(&denies.collect::<Vec<_>>()));
    if !table.cuts.is_empty() {
        let cuts = table.cuts.iter().map(|cut| format!("  {cut}\n"));
        section("asked for, and not given by a ceiling", cuts.collect());
    }
    section(
        "may be reached",
        aligned(&[
            ["network".to_owned(), table.network.clone()],
            ["unix sockets".to_owned(), table.unix_sockets.clone()],
        ]),
    );
    let limits = table
        .limits
        .iter()
        .map(|(name, value)| [(*name).to_owned(), value.clone()]);
    section("limits", aligned(&limits.collect::<Vec<_>>()));
    let variables = table.environment.iter().map(|v| [v.name.clone(), v.value.clone()]);
    let own = [["HOME".to_owned(), table.home.to_owned()]];
    section(
        "environment (PATH, TMPDIR, LANG and TERM besides)",
        aligned(&own.into_iter().chain(variables).collect::<Vec<_>>()),
    );
    let asks = table
        .asks
        .iter()
        .map(|ask| [ask.what.clone(), ask.approval.clone(), ask.origin.clone()]);
    section("approval", aligned(&asks.collect::<Vec<_>>()));
    section("protected below writable roots", names(table));
    section(
        "session",
        aligned(&[
            ["mode".to_owned(), table.mode.clone()],
            ["sandbox".to_owned(), table.os_sandbox.to_owned()],
        ]),
    );
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The names, a few to a line.
fn names(table: &Table) -> String {
    let mut lines: Vec<String> = Vec::new();
    for name in &table.protected.names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < 96 => {
                line.push(' ');
                line.push_str(name);
            }
            Some(_) | None => lines.push(format!("  {name}")),
        }
    }
    lines.extend(table.protected.files.iter().map(|file| format!("  {file}")));
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}
