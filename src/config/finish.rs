//! A draft whose place is known → the root, its directory made if it was asked for and missing.

use super::error::Diagnostic;
use super::paths;
use super::roots::Draft;
use super::scalar::At;
use super::units;
use super::values;
use crate::policy::{Demand, Root, Suffix, SuffixSet};

impl Draft<'_> {
    /// The root, its directory made if it was asked for and missing.
    pub(crate) fn finish(self) -> Result<(Root, bool), Box<Diagnostic>> {
        let source = &self.layer.source;
        let (identity, made) = if let Some(identity) = self.identity {
            (identity, false)
        } else {
            let failed = |error: std::io::Error| {
                Diagnostic::error(format!(
                    "failed to make root `{}`: {}: {error}",
                    self.name.value, self.path
                ))
                .at(source.place(self.raw.root.at), "`create: true`")
            };
            std::fs::create_dir_all(&self.path).map_err(failed)?;
            let made = std::fs::symlink_metadata(&self.path).map_err(failed)?;
            if !made.is_dir() {
                return Err(failed(std::io::ErrorKind::NotADirectory.into()));
            }
            (paths::identity(&made), true)
        };
        let (read_approval, write_approval) = self.approvals()?;
        let root = Root {
            name: self.name.value.clone(),
            identity,
            scope: self.scope,
            rights: self.rights,
            suffixes: self.suffixes()?,
            max_file_bytes: match &self.raw.max_file_bytes {
                Some(size) => Some(values::unit(
                    source,
                    size.at,
                    units::size(&size.value.0),
                    units::SIZE_HINT,
                )?),
                None => None,
            },
            read_approval,
            write_approval,
            origin: source.origin(self.name.at),
            denies: self.denies.into_iter().map(|d| d.deny).collect(),
            path: self.path,
        };
        Ok((root, made))
    }

    fn suffixes(&self) -> Result<Option<SuffixSet>, Box<Diagnostic>> {
        let Some(list) = &self.raw.suffixes else {
            return Ok(None);
        };
        let one = |text: &At<String>| {
            Suffix::new(&text.value).map_err(|error| {
                let found = Diagnostic::error(error.to_string()).at(self.layer.source.place(text.at), "not a suffix");
                let bare = text.value.trim_start_matches('*').trim_start_matches('.');
                if bare.is_empty() {
                    found
                } else {
                    found.hint(format!("write `.{bare}`"))
                }
            })
        };
        list.iter().map(one).collect::<Result<SuffixSet, _>>().map(Some)
    }

    /// What reading and writing demand; one spelling each.
    fn approvals(&self) -> Result<(Demand, Demand), Box<Diagnostic>> {
        let source = &self.layer.source;
        let long = self.raw.approval.as_ref();
        let pick = |right: &str, long: Option<&At<_>>, short: Option<&At<bool>>, default| match (long, short) {
            (Some(long), Some(short)) => Err(Diagnostic::error(format!("the {right} approval is given twice"))
                .at(source.place(short.at), "the short form")
                .and(source.place(long.at), "the long form")
                .hint("keep one of them")),
            (Some(long), None) => match values::demand(source, long)? {
                Demand::Deny => Err(Diagnostic::error("a root cannot deny by approval")
                    .at(source.place(long.at), "asks a question whose answer is always no")
                    .hint("use `mode: ro`, or `deny: [...]`")),
                demand => Ok(demand),
            },
            (None, Some(short)) => Ok(if short.value { Demand::Required } else { Demand::None }),
            (None, None) => Ok(default),
        };
        let both = long.map(|l| &l.value);
        let read = pick(
            "read",
            both.and_then(|l| l.read.as_ref()),
            self.raw.read_approval.as_ref(),
            Demand::None,
        )?;
        let write = pick(
            "write",
            both.and_then(|l| l.write.as_ref()),
            self.raw.write_approval.as_ref(),
            Demand::Required,
        )?;
        Ok((read, write))
    }
}
