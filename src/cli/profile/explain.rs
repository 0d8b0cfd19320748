//! `stockade profile explain`.

use std::fmt::Write as _;

use super::args::ExplainArgs;
use super::inspection::inspection_of;
use super::print::print_json;
use crate::cli::error::{CliError, print};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::cli::start::current_directory;
use crate::config;
use crate::inspect::explain::PathReport;
use crate::inspect::host::{Decider, HostReport};
use crate::policy::Operation;
use crate::policy::path::display;
use crate::tools::explain::{Answer, BackendAnswer, Permitted, size};

/// Explains a path, or a host and port; exit code 1 when nothing that was asked about is permitted.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, CliError> {
    let context = policy::context(&args.policy.ceiling);
    let inspection = inspection_of(&args.policy, &context)?;
    if let Some((host, port)) = args.host() {
        let report = inspection.explain_host(&host, port);
        if args.json {
            print_json(&report)?;
        } else {
            print(&of_host(&report))?;
        }
        return Ok(if report.permits() { Exit::Success } else { Exit::Found });
    }
    let path = config::resolve_path(&current_directory()?.join(&args.path))
        .map_err(|error| CliError::failed(format!("{}: {error}", display(&args.path))))?;
    let operations = args
        .right
        .map_or(Operation::ALL.to_vec(), |right| vec![Operation::from(right)]);
    let report = inspection.explain(&path, &operations);
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(if report.permits() { Exit::Success } else { Exit::Found })
}

fn text(report: &PathReport) -> String {
    let mut text = format!("{}\n", report.path);
    for answer in &report.answers {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "\n  {}: {}", answer.operation, permitted(answer));
        let clause = answer.clause.as_ref().map_or_else(
            || "no clause grants it".to_owned(),
            |clause| format!("`{}` ({})", clause.text, clause.origin),
        );
        let mut line = |label: &str, what: &str| {
            let _infallible = writeln!(text, "    {label}: {what}");
        };
        line("decided by", &clause);
        for backend in &answer.backends {
            line(&format!("in {}", backend.backend.name()), &status(backend));
        }
        answer.notes.iter().for_each(|note| line("note", note));
        answer.change.iter().for_each(|change| line("to change it", change));
    }
    text
}

fn of_host(report: &HostReport) -> String {
    let kind = report.kind.as_ref().map(|kind| format!(" ({kind})"));
    let mut text = format!("connect {}:{}{}\n", report.host, report.port, kind.unwrap_or_default());
    for note in &report.notes {
        let _infallible = writeln!(text, "  {note}");
    }
    for answer in &report.answers {
        let access = if answer.access == answer.unasked {
            answer.access.to_owned()
        } else {
            format!(
                "{}, and {} to a command that nobody was asked about",
                answer.access, answer.unasked
            )
        };
        let _infallible = writeln!(text, "\n  {}: {access}", answer.of);
        let clause = answer
            .clause
            .as_ref()
            .map_or_else(|| "no entry names it".to_owned(), |clause| format!("`{}`", clause.text));
        let whose = match answer.decides {
            Decider::Config | Decider::Flag => "",
            Decider::Ceiling => "the ceiling ",
        };
        let mut line = |label: &str, what: &str| {
            let _infallible = writeln!(text, "    {label}: {what}");
        };
        line("decided by", &format!("{clause} ({whose}{})", answer.origin));
        for backend in &answer.backends {
            let detail = backend.detail.map_or_else(String::new, |detail| format!(" ({detail})"));
            line(
                &format!("in {}", backend.backend.name()),
                &format!("{}{detail}", backend.status),
            );
        }
        answer.notes.iter().for_each(|note| line("note", note));
        answer.change.iter().for_each(|change| line("to change it", change));
    }
    text
}

fn status(backend: &BackendAnswer) -> String {
    let more: Vec<&str> = backend.detail.as_deref().into_iter().chain(backend.caveat).collect();
    if more.is_empty() {
        backend.status.to_owned()
    } else {
        format!("{} ({})", backend.status, more.join("; "))
    }
}

fn permitted(answer: &Answer) -> String {
    let word = match answer.permitted {
        Permitted::Yes => "permitted",
        Permitted::Approved => "permitted to a command that was approved, not to one nobody was asked about",
        Permitted::No => "denied",
    };
    let up_to = answer.up_to.map(|bytes| format!(", files up to {}", size(bytes)));
    let protected = answer
        .protected
        .as_ref()
        .map(|why| format!(" by its grant, but the name is protected ({why})"));
    format!("{word}{}{}", up_to.unwrap_or_default(), protected.unwrap_or_default())
}
