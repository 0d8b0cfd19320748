//! `stockade profile check`.

use super::args::CheckArgs;
use super::inspection::inspection_of;
use super::print::{aligned, print_json};
use crate::cli::error::{CliError, print, print_notice};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::cli::start::runtime;
use crate::inspect::Inspection;
use crate::inspect::check::{Arrow, BackendCheck, Check, Proof, ProtectedNames};
use crate::tools::UserPaths;

/// Checks the arrows; exit code 1 when one fails, or nothing here would run commands.
pub(super) fn check(args: CheckArgs) -> Result<Exit, CliError> {
    let mut flags = args.policy;
    flags.config = args.file.or(flags.config);
    let context = policy::context(&flags.ceiling);
    let inspection = inspection_of(&flags, &context)?;
    let mut check = inspection.check();
    check.arrows.push(if args.no_selftest {
        Arrow::untried("--no-selftest")
    } else if let Some(root) = inspection.missing_roots().next() {
        // An inspection creates no root.
        Arrow::untried(&format!(
            "root `{}` is made when something starts, and is not there yet",
            root.name
        ))
    } else if check.holds() {
        self_test(&inspection, policy::places(&context)?)?
    } else {
        Arrow::untried("there is no plan to start with")
    });
    let holds = check.holds();
    if args.json {
        let mut object = serde_json::to_value(&check).map_err(CliError::failed)?;
        object["ok"] = holds.into();
        print_json(&object)?;
    } else {
        print(&text(&check, holds))?;
    }
    Ok(if holds { Exit::Success } else { Exit::Found })
}

fn self_test(inspection: &Inspection, places: UserPaths) -> Result<Arrow, CliError> {
    let tested = runtime()?.block_on(inspection.self_test(places));
    let tested = tested.map(|recovery| {
        for line in recovery.messages() {
            print_notice(line);
        }
    });
    Ok(Arrow::observed(tested.map_err(|error| error.to_string())))
}

fn text(check: &Check, holds: bool) -> String {
    let mut text = String::new();
    for arrow in &check.arrows {
        let label = match arrow.result {
            Proof::Holds => "holds  ",
            Proof::Fails => "FAILS  ",
            Proof::Untried => "untried",
        };
        text.extend([label, "  ", &arrow.claim]);
        text.extend(arrow.detail.iter().flat_map(|detail| [": ", detail]));
        text.push('\n');
    }
    for backend in &check.backends {
        text.push('\n');
        text.push_str(&of_backend(backend));
    }
    text.push_str(&names(&check.protect));
    text.push_str(if holds { "\nok\n" } else { "\nnot ok\n" });
    text
}

/// What the config changes in the list of protected names; empty if nothing.
fn names(protect: &ProtectedNames) -> String {
    let lists = [("and", &protect.add), ("without", &protect.except)];
    let changed: Vec<String> = lists
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(joint, names)| format!(", {joint} {}", names.join(" ")))
        .collect();
    match changed.as_slice() {
        [] => String::new(),
        changed => format!("\nprotected names: {}{}\n", protect.setting, changed.concat()),
    }
}

fn of_backend(check: &BackendCheck) -> String {
    let used = if check.used { " (commands run in it here)" } else { "" };
    let mut text = format!("in {}{used}\n", check.backend.name());
    text.extend(check.caveat.iter().flat_map(|caveat| ["  ", *caveat, "\n"]));
    for (label, why) in [("not available here", &check.unavailable), ("refuses", &check.refuses)] {
        text.extend(why.iter().flat_map(|why| ["  ", label, ": ", why, "\n"]));
    }
    let rows = check.clauses.iter().map(|row| {
        let detail = row
            .detail
            .as_ref()
            .map_or_else(String::new, |detail| format!(": {detail}"));
        [
            row.clause.clone(),
            row.origin.clone(),
            format!("{}{detail}", row.status),
        ]
    });
    text + &aligned(&rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_names_are_shown() {
        let protect = |add: &[&str], except: &[&str]| {
            let each = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            names(&ProtectedNames {
                setting: "default",
                add: each(add),
                except: each(except),
            })
        };
        assert_eq!(protect(&[], &[]), "");
        assert_eq!(
            protect(&["deploy.sh", "ops/**"], &[".idea/**"]),
            "\nprotected names: default, and deploy.sh ops/**, without .idea/**\n"
        );
        assert_eq!(
            protect(&[], &[".envrc"]),
            "\nprotected names: default, without .envrc\n"
        );
    }
}
