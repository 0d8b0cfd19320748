//! `stockade check`: diagnostics of a config, and what it permits.

use std::path::{Path, PathBuf};

use super::args::CheckArgs;
use super::error::{CliError, print};
use super::exit::Exit;
use super::{cuts, policy, reach};
use crate::config::{self, ConfigError, Context, Diagnostic, Loaded};
use crate::inspect::Inspection;
use crate::inspect::backend::{HostBackend, refusal_of_writers};
use crate::policy::{AbsPath, BackendChoice, Policy};
use crate::profile;
use crate::tools::narrowing::Narrowing;
use crate::tools::{
    UserPaths, leaves_no_place, log_stays_out_of_reach, unreadable_authorities, unseen_directory_warning,
};

/// The config to look at: the one named, or `stockade.yaml` here.
pub(super) fn target(named: Option<&PathBuf>) -> Result<PathBuf, CliError> {
    if let Some(file) = named {
        return Ok(file.clone());
    }
    config::discover(Path::new(".")).ok_or_else(|| {
        CliError::failed("there is no stockade.yaml here").remedy("name a config, or write one with `stockade init`")
    })
}

/// Refuses a config whose log its commands could reach.
fn require_private_log(loaded: Loaded, context: &Context) -> Result<Loaded, ConfigError> {
    let verified = UserPaths::of_user(context).map_or(Ok(()), |places| log_stays_out_of_reach(&loaded.policy, &places));
    let Err(error) = verified else {
        return Ok(loaded);
    };
    let diagnostic = Diagnostic::error(error.to_string());
    let diagnostic = match &loaded.log {
        Some(span) => diagnostic.at(span.clone(), "not a place for a log"),
        None => diagnostic,
    };
    Err(ConfigError::Invalid(diagnostic.hint(
        "write `default`, or an absolute path outside of every root and everything that commands may reach",
    )))
}

/// Refuses a config that none of its backends can enforce on any machine.
fn require_enforceable(loaded: Loaded) -> Result<Loaded, ConfigError> {
    let inspection = Inspection::of(loaded.policy.clone(), Narrowing::default());
    if let Some(why) = leaves_no_place(&inspection.approved) {
        return Err(ConfigError::Invalid(Diagnostic::error(why)));
    }
    let Some(refusal) = HostBackend::refusal_on_any_machine(&inspection) else {
        return Ok(loaded);
    };
    let with = match loaded.policy.backend {
        BackendChoice::Auto => "",
        BackendChoice::Landlock | BackendChoice::Namespaces | BackendChoice::Bwrap => " with the backend it names",
    };
    Err(ConfigError::Invalid(
        Diagnostic::error(format!("no machine can hold this config{with}: {refusal}"))
            .hint("`stockade profile check` says what each backend makes of a config"),
    ))
}

/// A warning where a command that is started here sees nothing of the directory.
fn unseen_directory(policy: &Policy) -> Option<String> {
    let here = AbsPath::new(std::env::current_dir().ok()?).ok()?;
    let (what, remedy) = unseen_directory_warning(policy, &here)?;
    Some(Diagnostic::warning(what).hint(remedy).to_string())
}

/// Checks the config; exit code 125, as of `run`, if it is wrong.
pub(super) fn check(args: &CheckArgs) -> Result<Exit, CliError> {
    let file = target(args.file.as_ref())?;
    let context = policy::context(&args.ceiling);
    // A discovered config is reviewed as `run` does it; neither creates anything.
    let loaded = match &args.file {
        Some(file) => config::examine(file, &context),
        None => config::trust::review(&file, &context).map(|(loaded, _)| loaded),
    };
    let loaded = match loaded
        .and_then(|loaded| require_private_log(loaded, &context))
        .and_then(require_enforceable)
    {
        Ok(loaded) => loaded,
        Err(error) if args.json => {
            let diagnostic = match &error {
                ConfigError::Invalid(diagnostic) => Some(diagnostic),
                _ => None,
            };
            let object =
                serde_json::json!({"ok": false, "error": error.to_string(), "remedies": [], "diagnostic": diagnostic});
            print(&format!("{object}\n"))?;
            return Ok(Exit::Failed);
        }
        Err(error) => return Err(CliError::failed(error)),
    };
    let warnings = loaded.warnings.iter().chain(&loaded.notes);
    let refuses_writers = refusal_of_writers(&loaded.policy).map(|refusal| {
        Diagnostic::warning(format!("a command that may write there starts nowhere: {refusal}")).to_string()
    });
    let unreadable = unreadable_authorities(&loaded.policy, &Narrowing::default(), &[]).into_iter();
    let unreadable = unreadable.map(|unreadable| Diagnostic::warning(unreadable).to_string());
    let warnings: Vec<String> = policy::warnings(warnings)
        .into_iter()
        .chain(refuses_writers)
        .chain(unreadable)
        .chain(unseen_directory(&loaded.policy))
        .collect();
    let cut = profile::cuts(&loaded.policy);
    let reach = reach::of(&loaded);
    if args.json {
        let mut object = reach::object(&reach);
        object.insert("ok".to_owned(), true.into());
        object.insert("warnings".to_owned(), warnings.into());
        object.insert("cuts".to_owned(), cut.iter().map(cuts::object).collect());
        print(&format!("{}\n", serde_json::Value::Object(object)))?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for warning in warnings {
        text.push_str(&warning);
        text.push('\n');
    }
    text.push_str(&cuts::warnings(&cut));
    text.push_str(&reach::text(&reach));
    text.extend([crate::policy::path::display(&file).as_str(), ": ok\n"]);
    print(&text)?;
    Ok(Exit::Success)
}
