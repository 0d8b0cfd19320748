//! Whole cases: make a world, act in it, hold what came of it against the model.

use stockade::backend::Regime;
use stockade::profile::{derive, intersect};
use stockade::tools::plan;

use super::confined::Machine;
use super::judge::{Judge, Scenario, is_permitted};
use super::operations::{Attempt, Deed, attempts};
use super::oracle::Layer;
use super::policies;
use super::random::Random;
use super::report::Report;
use super::tools::Tools;
use super::tree::Tree;

/// How many operations share one world.
const PER_CASE: usize = 40;

/// One world of the first kind: a config, a call, and its profile.
pub(crate) fn differential(regime: Regime, seed: u64, operations: usize, judge: Judge) -> Report {
    let (machine, tools) = (Machine::new(regime), Tools::ready());
    let mut report = Report::default();
    for number in 0.. {
        if report.operations >= operations || report.findings.len() > 20 {
            break;
        }
        let random = &mut Random::of_case(seed, number);
        let tree = Tree::grow(random, &tools.nothing);
        let policy = policies::policy(random, &tree, &tools);
        let call = policies::call(random);
        let profile = derive(&policy, &call);
        plan::check_against(&policy, &call, &profile).unwrap();
        let attempts = attempts(random, &tree, &profile.grants, &machine.beyond(&tools), PER_CASE);
        report.cases += 1;
        let performed = match machine.perform(&[&profile], policy.deny_fallback, &tools, &attempts) {
            Ok(performed) => performed,
            Err(_refusal) => {
                report.refused += 1;
                continue;
            }
        };
        let world = Scenario {
            title: format!("case {number}"),
            regime,
            tree: &tree,
            layers: &Layer::all(&[&profile], performed.mounted.as_ref(), &tree),
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
pub(crate) fn one_after_another(regime: Regime, seed: u64, operations: usize) -> Report {
    let (machine, tools) = (Machine::new(regime), Tools::ready());
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
            let mut attempts = attempts(random, &tree, &both.grants, &machine.beyond(&tools), PER_CASE);
            attempts.retain(|attempt| !matches!(attempt.deed, Deed::Attributes { .. }));
            let profiles: &[_] = if stacked { &[&p.0, &q.0] } else { &[&both] };
            let Ok(performed) = machine.perform(profiles, fallback, &tools, &attempts) else {
                report.refused += 1;
                break;
            };
            let layers = Layer::all(profiles, performed.mounted.as_ref(), &tree);
            let world = Scenario {
                title: format!("case {number}, stacked: {stacked}"),
                regime,
                tree: &tree,
                layers: &layers,
                model: &both,
                policy: None,
                judge: Judge::Honest,
            };
            world.judge(&attempts, &performed, &mut report);
            let excused = |attempt: &Attempt| {
                has_other_names(&tree, attempt) || layers.iter().any(|layer| layer.reason(attempt).is_some())
            };
            let told = attempts
                .iter()
                .map(|attempt| (excused(attempt), world.describe(attempt, "stacked or as one")));
            twins.push((performed.outcomes, told.collect::<Vec<_>>()));
        }
        let [(stacked, told), (single, told_single)] = twins.as_slice() else {
            continue;
        };
        let told = told.iter().zip(told_single);
        for ((one, other), ((by_layers, description), (by_one, _))) in stacked.iter().zip(single).zip(told) {
            let excused = *by_layers || *by_one;
            report.compared += usize::from(!excused);
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
