//! `shell.env` and `shell.limits`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::context::Context;
use super::error::Diagnostic;
use super::layers::{Layer, Layers, limit};
use super::paths::{self, Variables};
use super::raw::RawLimits;
use super::scalar::{At, Position, RawSize};
use super::units;
use super::values;
use crate::policy::{AbsPath, EnvRule, Environment, Limits, VarName};

/// The variables a command may see; the first layer that names one decides.
pub(crate) fn environment(
    layers: &Layers,
    context: &Context,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Environment, Box<Diagnostic>> {
    let mut rules: BTreeMap<VarName, EnvRule> = BTreeMap::new();
    for (layer, env) in layers
        .shells()
        .filter_map(|(layer, shell)| shell.env.as_ref().map(|env| (layer, env)))
    {
        for (name, value) in env.set.iter().flat_map(|set| &set.0) {
            let name = variable(layer, name)?;
            if let Some(value) = set_value(layer, value, context, warnings)? {
                rules.entry(name).or_insert(EnvRule::Set(value));
            }
        }
        for name in env.pass.iter().flatten() {
            rules.entry(variable(layer, name)?).or_insert(EnvRule::Pass);
        }
    }
    let mut environment = Environment::default();
    for (name, rule) in rules {
        environment.insert(name, rule);
    }
    Ok(environment)
}

fn variable(layer: &Layer, name: &At<String>) -> Result<VarName, Box<Diagnostic>> {
    let wrong = |why: String| Diagnostic::error(why).at(layer.source.span(name.at), "not passed on");
    if name.value.contains('*') {
        return Err(wrong(format!("`{}` is a pattern, not a variable", name.value)).hint("name each variable"));
    }
    if matches!(name.value.as_str(), "HOME" | "TMPDIR") {
        return Err(wrong(format!("`{}` is set by stockade itself", name.value))
            .hint("`shell.home: real` gives commands your own HOME"));
    }
    VarName::new(&name.value).map_err(|error| wrong(error.to_string()))
}

/// The value; in a preset the first alternative this user has, if any.
fn set_value(
    layer: &Layer,
    value: &At<String>,
    context: &Context,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Option<OsString>, Box<Diagnostic>> {
    let text = value.value.as_str();
    if text.contains('\0') {
        return Err(Diagnostic::error("a value may not hold a NUL byte").at(layer.source.span(value.at), "not a value"));
    }
    if !layer.source.is_preset() {
        if text.starts_with(['$', '~']) {
            let warning = Diagnostic::warning(format!("`{text}` is passed as it stands: values are not expanded"));
            warnings.push(*warning.at(layer.source.span(value.at), "taken literally"));
        }
        return Ok(Some(text.into()));
    }
    Ok(text
        .split(" | ")
        .find_map(|alternative| match alternative.strip_prefix('$') {
            Some(name) => context
                .variables
                .get(OsStr::new(name))
                .filter(|v| !v.is_empty())
                .cloned(),
            None if alternative.starts_with("~/") => {
                paths::expand(alternative, &AbsPath::root(), Variables::Expand, context)
                    .ok()
                    .flatten()
                    .filter(|path| path.exists())
                    .map(Into::into)
            }
            None => Some(alternative.into()),
        }))
}

/// The bounds; each from the first layer that sets it.
pub(crate) fn limits(layers: &Layers) -> Result<Limits, Box<Diagnostic>> {
    let size = |get: fn(&RawLimits) -> &Option<At<RawSize>>| {
        let size = limit(layers, get);
        size.map(|(layer, raw)| positive(layer, raw.at, units::size(&raw.value.0), units::SIZE_HINT))
            .transpose()
    };
    let count = |get: fn(&RawLimits) -> &Option<At<u64>>| {
        let count = limit(layers, get);
        count
            .map(|(layer, raw)| positive(layer, raw.at, Ok(raw.value), "leave the key out for no bound"))
            .transpose()
    };
    Ok(Limits {
        timeout: limit(layers, |l| &l.timeout)
            .map(|(layer, raw)| values::unit(&layer.source, raw.at, units::time(&raw.value.0), units::TIME_HINT))
            .transpose()?,
        memory: size(|l| &l.memory)?,
        processes: count(|l| &l.processes)?,
        open_files: count(|l| &l.open_files)?,
        file_size: size(|l| &l.file_size)?,
        output: size(|l| &l.output)?,
    })
}

/// A bound of zero would leave nothing to run: more likely a slip than a wish.
fn positive(
    layer: &Layer,
    at: Position,
    value: Result<u64, units::UnitError>,
    hint: &str,
) -> Result<u64, Box<Diagnostic>> {
    let value = value.and_then(|v| {
        if v == 0 {
            Err(units::UnitError::Zero("0".into()))
        } else {
            Ok(v)
        }
    });
    values::unit(&layer.source, at, value, hint)
}
