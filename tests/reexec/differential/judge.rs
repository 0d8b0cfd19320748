//! What came of an operation, held against the model.

use std::fmt::Write;

use stockade::backend::Regime;
use stockade::policy::path::escape;
use stockade::policy::{Access, Operation, Policy};
use stockade::profile::{FileReach, Profile};

use super::confined::{OperationResult, Performed};
use super::operations::{Attempt, Deed};
use super::oracle::{Layer, is_ruled_alone, permits, permitted};
use super::report::Report;
use super::tree::{Kind, Tree};

/// What is changed about the judgement, to see whether the run then fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    Honest,
    /// The model permits nothing.
    DeniesAll,
    /// The declared list is empty.
    DeclaresNothing,
}

/// The plan and the profile that operations were performed under, and how they are judged.
pub(crate) struct Scenario<'a> {
    pub(crate) title: String,
    pub(crate) regime: Regime,
    pub(crate) tree: &'a Tree,
    pub(crate) layers: &'a [Layer<'a>],
    pub(crate) model: &'a Profile,
    pub(crate) policy: Option<&'a Policy>,
    pub(crate) judge: Judge,
}

impl Scenario<'_> {
    pub(crate) fn judge(&self, attempts: &[Attempt], performed: &Performed, report: &mut Report) {
        for (attempt, outcome) in attempts.iter().zip(&performed.outcomes) {
            report.operations += 1;
            if let Err(what) = self.one(attempt, *outcome, performed, report) {
                report
                    .findings
                    .push(self.describe(attempt, &format!("{what}: {outcome:?}")));
            }
        }
    }

    fn one(
        &self,
        attempt: &Attempt,
        outcome: OperationResult,
        performed: &Performed,
        report: &mut Report,
    ) -> Result<(), String> {
        let deed = &attempt.deed;
        let (done, refused) = (is_permitted(outcome), is_refused(self.regime, outcome, deed));
        if !done && !refused {
            return Err("it failed for a reason that is none of the sandbox's".to_owned());
        }
        let may = permitted(self.model, deed) && self.judge != Judge::DeniesAll;
        if done && !may {
            if self.judge == Judge::Honest && self.is_ruled_by_another_name(deed) {
                report.by_another_name += 1;
                return Ok(());
            }
            return Err("PERMITTED by the kernel, denied by the profile".to_owned());
        }
        if done && self.policy.is_some_and(|policy| !permits(policy, deed)) {
            return Err("PERMITTED by the kernel, denied by the config".to_owned());
        }
        if done {
            self.nothing_gained(deed, outcome)?;
        }
        if !may {
            report.denied += 1;
            return Ok(());
        }
        let declared = match self.judge {
            Judge::Honest | Judge::DeniesAll => self.layers.iter().find_map(|layer| layer.reason(attempt)),
            Judge::DeclaresNothing => None,
        };
        match (done, declared) {
            (true, None) => report.permitted += 1,
            (true, Some(reason)) => return Err(format!("permitted, though declared stricter: {reason}")),
            (false, None) => return Err("refused for a reason that is not declared".to_owned()),
            (false, Some(reason)) => {
                let told = |words: &str| performed.stricter.iter().any(|status| status.contains(words));
                if !reason.said().is_none_or(told) {
                    return Err(format!("no status of the plan says: {reason}"));
                }
                *report.stricter.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    }

    /// A rule for one file is tied to the object: it is reached by each name it had at the start. So an object that may
    /// be reached by one of its names, where files are ruled one by one, is reached by the others.
    fn is_ruled_by_another_name(&self, deed: &Deed) -> bool {
        let Deed::Content { operations, object } = deed else {
            return false;
        };
        let names = self.tree.other_names(object);
        operations.iter().all(|operation| {
            let may = self.model.access(*operation, object) == Access::Full;
            may || names.iter().any(|name| is_ruled_alone(self.model, *operation, name))
        })
    }

    /// What was moved or linked is read by its new name only if one of its names may be read.
    fn nothing_gained(&self, deed: &Deed, outcome: OperationResult) -> Result<(), String> {
        let (from, to, kind) = match deed {
            Deed::Move { from, to, kind } => (from, to, *kind),
            Deed::Exchange { one, other } => (one, other, Kind::File),
            _ => return Ok(()),
        };
        let operation = match kind {
            Kind::Folder | Kind::Empty => Operation::List,
            Kind::File | Kind::Link => Operation::Read,
        };
        let may = |path| self.model.access(operation, path) != Access::Denied;
        let known = may(from) || may(to) || self.tree.other_names(from).iter().any(may);
        if outcome.afterwards == Some(0) && !known {
            return Err("READ by its new name, denied by both".to_owned());
        }
        Ok(())
    }

    pub(crate) fn describe(&self, attempt: &Attempt, what: &str) -> String {
        let [a, b] = &attempt.arguments;
        let mut text = format!(
            "{}: {what}\n  {} {} {}\n  {:?}\n",
            self.title,
            char::from(attempt.letter),
            escape(a),
            escape(b),
            attempt.deed
        );
        for layer in self.layers.iter().map(|layer| layer.profile) {
            for grant in &layer.grants {
                writeln!(
                    text,
                    "  {:?} {} {} {:?}",
                    grant.scope,
                    grant.path,
                    grant.rights,
                    (&grant.suffixes, grant.max_file_bytes)
                )
                .unwrap();
            }
            for deny in &layer.denies {
                writeln!(
                    text,
                    "  deny {} {} {:?}",
                    deny.target,
                    deny.rights,
                    (&deny.except, deny.beyond)
                )
                .unwrap();
            }
            text.push_str("  --\n");
        }
        text
    }
}

/// The content of a file that was emptied earlier is no program, and not each file system has attributes: that is found
/// out after the sandbox has let the call through.
pub(crate) fn is_permitted(outcome: OperationResult) -> bool {
    [0, libc::ENOEXEC, libc::EOPNOTSUPP].contains(&outcome.errno)
}

/// Whether the sandbox has refused it, and nothing else.
fn is_refused(regime: Regime, outcome: OperationResult, deed: &Deed) -> bool {
    let also: &[i32] = match deed {
        Deed::Move { .. } | Deed::Exchange { .. } => &[libc::EXDEV],
        Deed::Internet | Deed::UnixSocket => &[libc::EAFNOSUPPORT],
        Deed::Content { .. }
        | Deed::List { .. }
        | Deed::Entry { .. }
        | Deed::Through { .. }
        | Deed::Attributes { .. }
        | Deed::ProcessOutside
        | Deed::OwnProcess => &[],
    };
    let by_mounts: &[i32] = match (regime, deed) {
        (Regime::None | Regime::Landlock | Regime::Seatbelt, _)
        | (Regime::Namespaces, Deed::UnixSocket | Deed::OwnProcess) => &[],
        // What is masked is no longer the kind of thing that it was.
        (Regime::Namespaces, Deed::Content { .. }) => &[libc::ENOENT, libc::EROFS, libc::EINVAL],
        (
            Regime::Namespaces,
            Deed::List { .. }
            | Deed::Entry { .. }
            | Deed::Through { .. }
            | Deed::Move { .. }
            | Deed::Exchange { .. }
            | Deed::Attributes { .. },
        ) => &[libc::ENOENT, libc::EROFS, libc::EBUSY],
        // There is nobody on this loopback, and no such process.
        (Regime::Namespaces, Deed::Internet) => &[libc::ECONNREFUSED],
        (Regime::Namespaces, Deed::ProcessOutside) => &[libc::ESRCH],
    };
    let always = [libc::EACCES, libc::EPERM];
    [&always, also, by_mounts]
        .iter()
        .any(|errnos| errnos.contains(&outcome.errno))
}
