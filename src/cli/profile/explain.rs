//! `stockade profile explain`.

use std::fmt::Write as _;

use super::args::ExplainArgs;
use super::{here, inspected, print_json};
use crate::cli::complain::{Complaint, print};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::config;
use crate::policy::Operation;
use crate::policy::path::display;
use crate::tools::inspect::explain::{Answer, PathReport, Permitted};
use crate::tools::inspect::show::size;

/// Explains a path; exit code 1 when nothing that was asked about is permitted.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, Complaint> {
    let context = policy::context(&args.policy.ceiling);
    let inspection = inspected(&args.policy, &context)?;
    let path = config::leads_to(&here()?.join(&args.path))
        .map_err(|error| Complaint::failed(format!("{}: {error}", display(&args.path))))?;
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
            let more: Vec<&str> = backend.detail.as_deref().into_iter().chain(backend.caveat).collect();
            let detail = if more.is_empty() {
                String::new()
            } else {
                format!(" ({})", more.join("; "))
            };
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

fn permitted(answer: &Answer) -> String {
    let word = match answer.permitted {
        Permitted::Yes => "permitted",
        Permitted::Approved => "permitted to a command that was approved, not to one nobody was asked about",
        Permitted::No => "denied",
    };
    let up_to = answer.up_to.map(|bytes| format!(", files up to {}", size(bytes)));
    format!("{word}{}", up_to.unwrap_or_default())
}
