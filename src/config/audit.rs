//! `audit:`: whether what happens is recorded, and where.

use super::context::Context;
use super::error::Diagnostic;
use super::layers::{Layer, Layers, Role};
use super::paths::{self, Variables};
use super::scalar::{At, RawSize};
use super::source::Span;
use super::{units, values};
use crate::policy::{AbsPath, Audit, AuditLog};

/// The smallest size of a log file: room for several records of the largest size.
const LEAST_BYTES: u64 = 64 << 10;

/// Resolves `audit:`. A ceiling may only demand a log.
pub(super) fn audit(layers: &Layers, context: &Context) -> Result<Audit, Box<Diagnostic>> {
    let default = Audit::default();
    let log = layers.first(|raw| raw.audit.as_ref()?.log.as_ref());
    let max_bytes = layers.first(|raw| raw.audit.as_ref()?.max_bytes.as_ref());
    let keep = layers.first(|raw| raw.audit.as_ref()?.keep.as_ref());
    match layers.role {
        Role::Config => Ok(Audit {
            log: log.map_or(Ok(AuditLog::Off), |(layer, found)| log_location(layer, found, context))?,
            max_bytes: max_bytes.map_or(Ok(default.max_bytes), |(layer, found)| bytes(layer, found))?,
            keep: keep.map(|(_, found)| found.value),
        }),
        Role::Ceiling => {
            let settings = [
                ("audit.max_bytes", max_bytes.map(|(layer, found)| (layer, found.at))),
                ("audit.keep", keep.map(|(layer, found)| (layer, found.at))),
            ];
            if let Some((key, (layer, at))) = settings.into_iter().find_map(|(key, found)| Some((key, found?))) {
                return Err(Diagnostic::error(format!("`{key}` says nothing in a ceiling"))
                    .at(layer.source.span(at), "would be ignored, so it is refused")
                    .hint("a ceiling demands that there is a log: `audit: {log: required}`"));
            }
            let log = log.map_or(Ok(AuditLog::Off), |(layer, found)| required_log(layer, found))?;
            Ok(Audit { log, ..default })
        }
    }
}

/// The span of `audit.log`.
pub(super) fn log_span(layers: &Layers) -> Option<Span> {
    let (layer, found) = layers.first(|raw| raw.audit.as_ref()?.log.as_ref())?;
    Some(layer.source.span(found.at))
}

fn log_location(layer: &Layer, found: &At<String>, context: &Context) -> Result<AuditLog, Box<Diagnostic>> {
    let text = found.value.as_str();
    let wrong = |why: String| Diagnostic::error(why).at(layer.source.span(found.at), "not a place for a log");
    match text {
        "off" => return Ok(AuditLog::Off),
        "default" => return Ok(AuditLog::Default),
        "required" => {
            return Err(wrong("`audit.log: required` belongs in a ceiling".to_owned())
                .hint("write `default`, or the absolute path of a file"));
        }
        _ => {}
    }
    // A relative path would lie beside the config, among the files that the agent works on.
    if !text.starts_with(['/', '~']) {
        return Err(wrong(format!("audit.log `{text}` is no absolute path"))
            .hint("write `default`, `off`, or an absolute path outside of every root"));
    }
    let path = paths::expand(text, &AbsPath::root(), Variables::Refuse, context);
    let path = path.map_err(|error| wrong(format!("audit.log `{text}`: {error}")))?;
    let path = AbsPath::new(path.unwrap_or_default()).map_err(|error| wrong(format!("audit.log `{text}`: {error}")))?;
    Ok(AuditLog::At(path))
}

fn bytes(layer: &Layer, found: &At<RawSize>) -> Result<u64, Box<Diagnostic>> {
    let size = values::unit(&layer.source, found.at, units::size(&found.value.0), units::SIZE_HINT)?;
    if size < LEAST_BYTES {
        return Err(Diagnostic::error("`audit.max_bytes` is too small for a log")
            .at(layer.source.span(found.at), "less than 64KiB")
            .hint("leave it out for 64MiB"));
    }
    Ok(size)
}

fn required_log(layer: &Layer, found: &At<String>) -> Result<AuditLog, Box<Diagnostic>> {
    if found.value == "required" {
        return Ok(AuditLog::Default);
    }
    Err(
        Diagnostic::error(format!("`audit.log: {}` says nothing in a ceiling", found.value))
            .at(layer.source.span(found.at), "would be ignored, so it is refused")
            .hint("`required` demands that there is a log; where it lies is for the config or a flag to say"),
    )
}
