//! `stockade trust`: a person says that they have read a config.

use super::args::TrustArgs;
use super::error::{CliError, print};
use super::exit::Exit;
use super::reach::Detail;
use super::{check, policy, reach};
use crate::config::trust::{Store, TrustState};
use crate::config::{Context, NamedFile, trust};
use crate::policy::path::display;

/// Records path, content, resolved roots and base paths of the config, and shows what it permits.
pub(super) fn trust(args: &TrustArgs) -> Result<Exit, CliError> {
    let context = policy::context(&[]);
    if args.list {
        return list(args, &context);
    }
    if args.forget {
        return forget(args, &context);
    }
    let file = check::target(args.file.as_ref())?;
    let (loaded, _) = trust::review(&file, &context).map_err(CliError::failed)?;
    trust::record(&loaded, &context).map_err(CliError::failed)?;
    let shown = reach::of(&loaded);
    let warnings = loaded.warnings.iter().chain(&loaded.notes);
    let warnings = policy::warnings(warnings);
    let sha256 = loaded.files.first().map(NamedFile::hex).unwrap_or_default();
    if args.json {
        let mut object = reach::object(&shown);
        object.insert("trusted".to_owned(), display(&file).into());
        object.insert("sha256".to_owned(), sha256.into());
        object.insert("warnings".to_owned(), warnings.into());
        print(&format!("{}\n", serde_json::Value::Object(object)))?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for warning in warnings {
        text.extend([warning.as_str(), "\n"]);
    }
    text.extend(["trusted ", &display(&file), "; a later change must be trusted again\n"]);
    text.extend(["  sha256: ", &sha256, "\n", &reach::text(&shown, Detail::All)]);
    print(&text)?;
    Ok(Exit::Success)
}

/// Lists the trusted configs.
fn list(args: &TrustArgs, context: &Context) -> Result<Exit, CliError> {
    let store = Store::open(context).map_err(CliError::failed)?;
    let state = |state| match state {
        TrustState::Same => "trusted",
        TrustState::Changed => "changed",
        TrustState::Missing => "gone",
    };
    if args.json {
        let one = |of: trust::Trusted| serde_json::json!({"file": display(&of.path), "sha256": of.sha256, "state": state(of.state)});
        let all: Vec<serde_json::Value> = store.configs().map(one).collect();
        print(&format!("{}\n", serde_json::json!({"configs": all})))?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for of in store.configs() {
        text.extend([state(of.state), " ", &display(&of.path), "\n"]);
    }
    print(&text)?;
    Ok(Exit::Success)
}

/// Withdraws trust. A config that was not trusted is an error: it is probably a mistake.
fn forget(args: &TrustArgs, context: &Context) -> Result<Exit, CliError> {
    // The file may no longer exist.
    let file = args.file.clone().unwrap_or_else(|| "stockade.yaml".into());
    if !trust::forget(&file, context).map_err(CliError::failed)? {
        return Err(CliError::failed(format!("{} was not trusted", display(&file)))
            .remedy("`stockade trust --list` shows what is"));
    }
    if args.json {
        print(&format!("{}\n", serde_json::json!({"forgotten": display(&file)})))?;
    } else {
        print(&format!(
            "forgotten {}; it must be trusted again to be used\n",
            display(&file)
        ))?;
    }
    Ok(Exit::Success)
}
