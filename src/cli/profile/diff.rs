//! `stockade profile diff`.

use std::io::Read as _;
use std::path::Path;

use super::args::DiffArgs;
use super::inspection::warn;
use super::print::print_json;
use crate::cli::error::{CliError, print};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::cli::start::current_directory;
use crate::config::{self, Context};
use crate::inspect::Inspection;
use crate::inspect::diff::{Comparison, Difference, OneSide};
use crate::inspect::document::{Document, Side};
use crate::policy::path::display;
use crate::tools::Narrowing;

/// Larger than an exported profile of the largest config.
const MAX_BYTES: u64 = 1 << 28;

/// Compares two policies; exit code 1 when they differ.
pub(super) fn diff(args: &DiffArgs) -> Result<Exit, CliError> {
    let context = policy::context(&args.ceiling);
    let (a, b) = (side(&args.a, &context)?, side(&args.b, &context)?);
    let comparison = Comparison::of(&a, &b, args.most);
    let equal = comparison.is_empty();
    let names = [display(&args.a), display(&args.b)];
    if args.json {
        let mut object = serde_json::to_value(&comparison).map_err(CliError::failed)?;
        object["a"] = names[0].clone().into();
        object["b"] = names[1].clone().into();
        object["equal"] = equal.into();
        print_json(&object)?;
    } else {
        print(&text(&comparison, &names))?;
    }
    Ok(if equal { Exit::Success } else { Exit::Found })
}

/// A preset by its name, else a file: an exported profile if it says that it is one, else a config.
fn side(named: &Path, context: &Context) -> Result<Side, CliError> {
    let preset = named
        .to_str()
        .filter(|name| config::preset_names().any(|preset| preset == *name));
    let loaded = if let Some(name) = preset {
        config::preset(name, &current_directory()?, context)
    } else {
        let text = read(named)?;
        if Document::is_document(&text) {
            return Document::read(&text).map_err(|error| CliError::failed(format!("{}: {error}", display(named))));
        }
        config::examine(named, context)
    };
    let loaded = loaded.map_err(CliError::failed)?;
    warn(&loaded);
    Ok(Side::of(&Inspection::of(loaded.policy, Narrowing::default())))
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("failed to read {}: {error}", display(path)));
    let file = std::fs::File::open(path)
        .map_err(|error| failed(error).remedy("name a config, an exported profile, or one of the presets"))?;
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

fn text(comparison: &Comparison, names: &[String; 2]) -> String {
    if comparison.is_empty() {
        return "they permit the same\n".to_owned();
    }
    let mut text = String::new();
    let mut section = |title: &str, both: &Difference| {
        for (only, name) in [(&both.only_a, &names[0]), (&both.only_b, &names[1])] {
            if !only.witnesses.is_empty() {
                text.push_str(&of_side(title, name, only));
            }
        }
    };
    section("permitted to approved commands", &comparison.approved);
    section("permitted without a question", &comparison.unasked);
    section("rules", &comparison.rules);
    if !comparison.settings.is_empty() {
        text.push_str("settings\n");
        for setting in &comparison.settings {
            text.extend(["  ", &setting.name, ": ", &setting.a, " | ", &setting.b, "\n"]);
        }
    }
    text
}

fn of_side(title: &str, name: &str, only: &OneSide) -> String {
    let mut text = format!("{title}, only by {name}\n");
    for witness in &only.witnesses {
        text.extend(["  ", witness, "\n"]);
    }
    if only.more > 0 {
        text.extend(["  … and ", &only.more.to_string(), " more\n"]);
    }
    text
}
