//! Whole cases: make a world, act in it, hold what came of it against the model.

use std::fmt::Write;

use stockade::policy::path::escape;
use stockade::policy::{Access, Operation, Policy};
use stockade::profile::{Asked, Call, FileReach, Profile, derive, intersect};
use stockade::tools::plan;

use super::confined::{Machine, Outcome, Performed};
use super::operations::{Attempt, Deed, attempts};
use super::oracle::{is_ruled_alone, permits, permitted, reason};
use super::policies;
use super::random::Random;
use super::report::Report;
use super::tools::Tools;
use super::tree::{Kind, Tree};

/// How many operations share one world.
const PER_CASE: usize = 40;

/// What is changed about the judgement, to see whether the run then fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    Honest,
    /// The model permits nothing.
    DeniesAll,
    /// The declared list is empty.
    DeclaresNothing,
}

/// One world of the first kind: a config, a call, the profile of the call under that of the session.
pub(crate) fn differential(seed: u64, operations: usize, judge: Judge) -> Report {
    let (machine, tools) = (Machine::new(), Tools::ready());
    let mut report = Report::default();
    for number in 0.. {
        if report.operations >= operations || report.findings.len() > 20 {
            break;
        }
        let random = &mut Random::of_case(seed, number);
        let tree = Tree::grow(random, &tools.nothing);
        let policy = policies::policy(random, &tree, &tools);
        let everything = Call {
            asked: Asked::Everything,
            narrow: None,
        };
        let (envelope, profile) = (derive(&policy, &everything), derive(&policy, &policies::call(random)));
        plan::hold_against(&policy, &envelope).unwrap();
        plan::hold_against(&policy, &profile).unwrap();
        let attempts = attempts(random, &tree, &profile.grants, PER_CASE);
        report.cases += 1;
        let performed = match machine.perform(&envelope, &profile, policy.deny_fallback, &tools, &attempts) {
            Ok(performed) => performed,
            Err(_refusal) => {
                report.refused += 1;
                continue;
            }
        };
        let world = World {
            title: format!("case {number}"),
            tree: &tree,
            layers: &[&envelope, &profile],
            model: &profile,
            policy: Some(&policy),
            judge,
        };
        world.judge(&attempts, &performed, &mut report);
    }
    report
}

/// One world of the second kind: a command under two profiles, one layer after the other, beside the same world under
/// their intersection.
pub(crate) fn one_after_another(seed: u64, operations: usize) -> Report {
    let (machine, tools) = (Machine::new(), Tools::ready());
    let mut report = Report::default();
    for number in 1_000_000.. {
        if report.operations >= operations || report.findings.len() > 20 {
            break;
        }
        report.cases += 1;
        let mut twins = Vec::new();
        for stacked in [true, false] {
            // The same choices twice: the same world at two places.
            let random = &mut Random::of_case(seed, number);
            let tree = Tree::grow(random, &tools.nothing);
            let [p, q] = [(), ()].map(|()| {
                let mut policy = policies::policy(random, &tree, &tools);
                policies::widen(&mut policy, &tree);
                (derive(&policy, &policies::call(random)), policy.deny_fallback)
            });
            let both = intersect(&p.0, &q.0);
            let fallback = p.1.max(q.1);
            // The broker holds the attributes of the command's own profile, and of no other layer.
            let mut attempts = attempts(random, &tree, &both.grants, PER_CASE);
            attempts.retain(|attempt| !matches!(attempt.deed, Deed::Attributes { .. }));
            let (worker, command) = if stacked { (&p.0, &q.0) } else { (&both, &both) };
            let Ok(performed) = machine.perform(worker, command, fallback, &tools, &attempts) else {
                report.refused += 1;
                break;
            };
            let world = World {
                title: format!("case {number}, stacked: {stacked}"),
                tree: &tree,
                layers: &[worker, command],
                model: &both,
                policy: None,
                judge: Judge::Honest,
            };
            world.judge(&attempts, &performed, &mut report);
            let excused = |attempt: &Attempt| {
                let layers = [&p.0, &q.0, &both];
                has_other_names(&tree, attempt)
                    || layers.into_iter().any(|layer| reason(layer, &attempt.deed).is_some())
            };
            let told = attempts
                .iter()
                .map(|attempt| (excused(attempt), world.describe(attempt, "stacked or as one")));
            twins.push((performed.outcomes, told.collect::<Vec<_>>()));
        }
        let [(stacked, told), (single, _)] = twins.as_slice() else {
            continue;
        };
        for ((one, other), (excused, description)) in stacked.iter().zip(single).zip(told) {
            if is_permitted(*one) != is_permitted(*other) && !excused {
                report
                    .findings
                    .push(format!("{one:?} stacked, {other:?} as one\n{description}"));
            }
        }
    }
    report
}

/// How far a rule for one object goes by its other names depends on what else is ruled.
fn has_other_names(tree: &Tree, attempt: &Attempt) -> bool {
    match &attempt.deed {
        Deed::Content { object, .. } | Deed::Through { object, .. } => !tree.other_names(object).is_empty(),
        _ => false,
    }
}

struct World<'a> {
    title: String,
    tree: &'a Tree,
    layers: &'a [&'a Profile],
    model: &'a Profile,
    policy: Option<&'a Policy>,
    judge: Judge,
}

impl World<'_> {
    fn judge(&self, attempts: &[Attempt], performed: &Performed, report: &mut Report) {
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
        outcome: Outcome,
        performed: &Performed,
        report: &mut Report,
    ) -> Result<(), String> {
        let deed = &attempt.deed;
        let (done, refused) = (is_permitted(outcome), is_refused(outcome, deed));
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
            Judge::Honest | Judge::DeniesAll => self.layers.iter().find_map(|layer| reason(layer, deed)),
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
    fn nothing_gained(&self, deed: &Deed, outcome: Outcome) -> Result<(), String> {
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

    fn describe(&self, attempt: &Attempt, what: &str) -> String {
        let [a, b] = &attempt.arguments;
        let mut text = format!(
            "{}: {what}\n  {} {} {}\n  {:?}\n",
            self.title,
            char::from(attempt.letter),
            escape(a),
            escape(b),
            attempt.deed
        );
        for layer in self.layers {
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
fn is_permitted(outcome: Outcome) -> bool {
    [0, libc::ENOEXEC, libc::EOPNOTSUPP].contains(&outcome.errno)
}

/// Whether the sandbox has refused it, and nothing else.
fn is_refused(outcome: Outcome, deed: &Deed) -> bool {
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
    [libc::EACCES, libc::EPERM].contains(&outcome.errno) || also.contains(&outcome.errno)
}
