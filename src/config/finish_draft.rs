//! Draft → root. Nothing is created: a config may be examined without being applied.

use super::error::Diagnostic;
use super::roots::Draft;
use super::scalar::At;
use super::source::Span;
use super::units;
use super::values;
use crate::policy::{Demand, DemandSource, Identity, Root, Suffix, SuffixSet};

/// The identity of a directory that is not created yet: no file has inode 0.
pub(crate) const ABSENT: Identity = Identity { device: 0, inode: 0 };

impl Draft<'_> {
    /// The root, and the span of a missing directory that is to be created. `writing` is the default demand of writing.
    pub(crate) fn finish(self, writing: Demand) -> Result<(Root, Option<Span>), Box<Diagnostic>> {
        let source = &self.layer.source;
        let (identity, missing_at) = match self.identity {
            Some(identity) => (identity, None),
            None => (ABSENT, Some(source.span(self.raw.root.at))),
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
            read_approval: read_approval.unwrap_or(Demand::None),
            write_approval: write_approval.unwrap_or(writing),
            write_demand_source: match write_approval {
                Some(_) => DemandSource::Config,
                None => DemandSource::Default,
            },
            origin: source.origin(self.name.at),
            denies: self.denies.into_iter().map(|d| d.deny).collect(),
            path: self.path,
        };
        Ok((root, missing_at))
    }

    fn suffixes(&self) -> Result<Option<SuffixSet>, Box<Diagnostic>> {
        let Some(list) = &self.raw.suffixes else {
            return Ok(None);
        };
        let one = |text: &At<String>| {
            Suffix::new(&text.value).map_err(|error| {
                let found = Diagnostic::error(error.to_string()).at(self.layer.source.span(text.at), "not a suffix");
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

    /// The demands of reading and writing that are written; each in one form only.
    fn approvals(&self) -> Result<(Option<Demand>, Option<Demand>), Box<Diagnostic>> {
        let source = &self.layer.source;
        let long = self.raw.approval.as_ref();
        let pick = |right: &str, long: Option<&At<_>>, short: Option<&At<bool>>| match (long, short) {
            (Some(long), Some(short)) => Err(Diagnostic::error(format!("the {right} approval is given twice"))
                .at(source.span(short.at), "the short form")
                .and(source.span(long.at), "the long form")
                .hint("keep one of them")),
            (Some(long), None) => match values::demand(source, long)? {
                Demand::Deny => Err(Diagnostic::error("a root cannot deny by approval")
                    .at(source.span(long.at), "asks a question whose answer is always no")
                    .hint("use `mode: ro`, or `deny: [...]`")),
                demand => Ok(Some(demand)),
            },
            (None, Some(short)) => Ok(Some(if short.value { Demand::Required } else { Demand::None })),
            (None, None) => Ok(None),
        };
        let both = long.map(|l| &l.value);
        let read = pick(
            "read",
            both.and_then(|l| l.read.as_ref()),
            self.raw.read_approval.as_ref(),
        )?;
        let write = pick(
            "write",
            both.and_then(|l| l.write.as_ref()),
            self.raw.write_approval.as_ref(),
        )?;
        Ok((read, write))
    }
}
