//! `stockade profile show`.

use std::fmt::Write as _;

use super::args::ShowArgs;
use super::inspection::{inspection_of, without_backend};
use super::print::{aligned, print_json};
use crate::cli::error::{CliError, print};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::inspect::hosts::NetworkRow;
use crate::inspect::show::Table;

pub(super) fn show(args: &ShowArgs) -> Result<Exit, CliError> {
    without_backend(
        &args.policy,
        "the table is of the profile, which is the same in every backend",
    )?;
    let table = Table::of(&inspection_of(&args.policy, &policy::context(&args.policy.ceiling))?);
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
    section("may be reached", aligned(&reached(table)));
    let hosts: Vec<[String; 4]> = table.networks.iter().flat_map(hosts).collect();
    if !hosts.is_empty() {
        section("hosts", aligned(&hosts) + &backends_line(&table.networks));
    }
    let limits = table
        .limits
        .iter()
        .map(|(name, value)| [(*name).to_owned(), value.clone()]);
    section("limits", aligned(&limits.collect::<Vec<_>>()));
    let variables = table.environment.iter().map(|v| [v.name.clone(), v.value.clone()]);
    let own = [["HOME".to_owned(), table.home.to_owned()]];
    section(
        "environment (PATH, TMPDIR, TMPPREFIX, LANG and TERM besides)",
        aligned(&own.into_iter().chain(variables).collect::<Vec<_>>()),
    );
    let asks = table
        .asks
        .iter()
        .map(|ask| [ask.what.clone(), ask.approval.clone(), ask.origin.clone()]);
    section("approval", aligned(&asks.collect::<Vec<_>>()));
    let unasked = table
        .runs_unasked
        .iter()
        .map(|answer| [answer.what.clone(), answer.effect(), answer.origin.clone()]);
    section("runs unasked", aligned(&unasked.collect::<Vec<_>>()));
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

/// The networks and sockets; those of rules and tools with their lines.
fn reached(table: &Table) -> Vec<[String; 3]> {
    let all = ["network".to_owned(), table.network.clone(), String::new()];
    let own = table.networks.iter().skip(1).map(|row| {
        let of = format!("network of {}", row.of);
        [of, row.network.clone(), row.origin.clone().unwrap_or_default()]
    });
    let sockets = ["unix sockets".to_owned(), table.unix_sockets.clone(), String::new()];
    std::iter::once(all).chain(own).chain([sockets]).collect()
}

/// The hosts of a network, one per row.
fn hosts(network: &NetworkRow) -> impl Iterator<Item = [String; 4]> {
    network.hosts.iter().map(|row| {
        let access = if row.access == row.unasked {
            row.access.to_owned()
        } else {
            format!("{}, unasked: {}", row.access, row.unasked)
        };
        [row.hosts.clone(), access, network.of.clone(), row.origin.clone()]
    })
}

/// What each backend makes of lists of hosts; it is the same for every list.
fn backends_line(networks: &[NetworkRow]) -> String {
    let lists = networks.iter().filter(|row| !row.hosts.is_empty());
    let statuses = lists
        .take(1)
        .flat_map(|row| &row.backends)
        .map(|backend| match backend.status {
            "refused" => format!("{} refuses such calls", backend.backend.name()),
            status => format!("{status} in {}", backend.backend.name()),
        });
    format!("  ({})\n", statuses.collect::<Vec<_>>().join(", "))
}

/// The names, several to a line.
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
