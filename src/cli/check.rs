//! `stockade check`: diagnostics of a config, what becomes of it on this machine, and what it permits.

use std::path::{Path, PathBuf};

use super::args::CheckArgs;
use super::error::{CliError, print};
use super::exit::Exit;
use super::reach::Detail;
use super::tool_error::tool_failure;
use super::{cuts, policy, reach};
use crate::config::{self, ConfigError, Context, Diagnostic, Loaded};
use crate::inspect::Inspection;
use crate::inspect::cautions::cautions;
use crate::policy::{AbsPath, BackendChoice, OsSandbox};
use crate::profile;
use crate::tools::narrowing::Narrowing;
use crate::tools::{
    Foreseen, UserPaths, foresee, log_stays_out_of_reach, unreadable_authorities, unwritable_root_warning,
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

/// Reads the config as `run` does; nothing is created.
fn read(args: &CheckArgs, file: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let loaded = match &args.file {
        Some(file) => config::examine(file, context),
        // A discovered config is reviewed.
        None => config::trust::review(file, context).map(|(loaded, _)| loaded),
    }?;
    require_private_log(loaded, context)
}

/// What commands of the config run in here, or what `run` says where they do not.
fn on_this_machine(loaded: &Loaded, context: &Context) -> Result<Foreseen, CliError> {
    let policy = &loaded.policy;
    let places = policy::places(context)?;
    foresee(policy, &Narrowing::default(), &places).map_err(|error| {
        let failure = tool_failure(error).remedy(format_args!(
            "this is of `backend: {}` on this machine; `--backend` checks for another",
            policy.backend.name()
        ));
        match policy.os_sandbox {
            OsSandbox::RefuseTools => {
                failure.remedy("`stockade mcp` starts with `os_sandbox_fallback: refuse_tools` and refuses each call that it cannot confine")
            }
            OsSandbox::FailFast | OsSandbox::NotRequired => failure,
        }
    })
}

/// The regime, and why it is that one.
fn regime_line(foreseen: &Foreseen, backend: BackendChoice) -> String {
    let Foreseen { regime, fallback, .. } = foreseen;
    let chosen = match (backend, fallback) {
        (BackendChoice::Auto, Some(why)) => format!(", which `auto` chooses on this machine: {why}"),
        (BackendChoice::Auto, None) => {
            ", which `auto` chooses on this machine (`--backend` asks for another)".to_owned()
        }
        (BackendChoice::Landlock | BackendChoice::Namespaces | BackendChoice::Bwrap, _) => {
            format!(", as `backend: {}` says", backend.name())
        }
    };
    format!("  regime: {regime}{chosen}\n")
}

/// All warnings, one for each cause.
fn warnings(loaded: &Loaded, foreseen: &Foreseen) -> Vec<String> {
    let policy = &loaded.policy;
    let mut found: Vec<Diagnostic> = Vec::new();
    found.extend(foreseen.unconfined.iter().map(|why| {
        *Diagnostic::warning(format!("nothing confines commands on this machine: {why}"))
            .hint("`require_os_sandbox: true` refuses to run them so")
    }));
    found.extend(foreseen.refused.iter().map(|what| *Diagnostic::warning(what)));
    let unreadable = unreadable_authorities(policy, &Narrowing::default(), &[]);
    found.extend(unreadable.into_iter().map(|what| *Diagnostic::warning(what)));
    found.extend(unwritable_root_warning(policy).map(|what| *Diagnostic::warning(what)));
    let here = std::env::current_dir().ok().and_then(|here| AbsPath::new(here).ok());
    let inspection = Inspection::of(policy.clone(), Narrowing::default());
    found.extend(cautions(
        &inspection,
        &loaded.custom_tools,
        foreseen.regime,
        here.as_ref(),
    ));
    policy::warnings(loaded.warnings.iter().chain(&loaded.notes).chain(&found))
}

/// That a config that was found is not used before it is trusted.
fn trust_line(args: &CheckArgs, loaded: &Loaded, context: &Context) -> Option<&'static str> {
    let is_trusted = args.file.is_some() || config::trust::is_trusted(loaded, context).unwrap_or(false);
    (!is_trusted).then_some("  trusted: no; `run` and `mcp` use it here after `stockade trust`, or with --config\n")
}

/// Checks the config; exit code 125, as of `run`, if it is wrong or cannot be held on this machine.
pub(super) fn check(args: &CheckArgs) -> Result<Exit, CliError> {
    policy::require_commands(args.backend)?;
    let file = target(args.file.as_ref())?;
    let context = policy::context(&args.ceiling);
    let mut loaded = match read(args, &file, &context) {
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
    loaded.policy.backend = policy::backend(args.backend).unwrap_or(loaded.policy.backend);
    let foreseen = on_this_machine(&loaded, &context)?;
    let warnings = if args.quiet {
        Vec::new()
    } else {
        warnings(&loaded, &foreseen)
    };
    let cut = profile::cuts(&loaded.policy);
    let reach = reach::of(&loaded);
    if args.json {
        let mut object = reach::object(&reach);
        object.insert("ok".to_owned(), true.into());
        object.insert("regime".to_owned(), foreseen.regime.into());
        object.insert("backend".to_owned(), loaded.policy.backend.name().into());
        object.insert("fallback".to_owned(), foreseen.fallback.into());
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
    if !args.quiet {
        text.push_str(&cuts::warnings(&cut));
    }
    text.push_str(&regime_line(&foreseen, loaded.policy.backend));
    let detail = if args.verbose { Detail::All } else { Detail::Short };
    text.push_str(&reach::text(&reach, detail));
    text.extend(trust_line(args, &loaded, &context));
    text.extend([crate::policy::path::display(&file).as_str(), ": ok\n"]);
    print(&text)?;
    Ok(Exit::Success)
}
