//! Verifies that an amended policy permits exactly what the old one and the accepted changes do.

use crate::config::amend::Change;
use crate::policy::{
    AbsPath, Access, Grant, HostList, HostRule, Network, NetworkOf, Operation, Origin, Policy, Rights, Scope,
};
use crate::profile::{ApprovedRoots, Call, FileReach, Landmarks, Profile, Reach, Witness, derive, files_within};

/// How an amended config differs from the old one with the accepted changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It gives more.
    #[error("the changed config would give more than was accepted: {0}")]
    More(String),
    /// It gives less.
    #[error("the changed config would take something away: {0}")]
    Less(String),
}

/// Verifies that `new` gives every call what `old` and these changes give.
///
/// # Errors
/// The first difference.
pub fn verify(old: &Policy, new: &Policy, accepted: &[&Change]) -> Result<(), Mismatch> {
    for asked in [ApprovedRoots::None, ApprovedRoots::All] {
        let call = Call::of(asked);
        profiles(old, &derive(old, &call), &derive(new, &call), accepted)?;
    }
    let others = |policy: &Policy| {
        let rules = policy.rules.iter().chain([&policy.default_rule]);
        let rules: Vec<_> = rules
            .map(|rule| {
                (
                    rule.pattern.clone(),
                    rule.allowed,
                    rule.approval,
                    rule.sandbox_paths.clone(),
                    rule.network.is_some(),
                )
            })
            .collect();
        let tools: Vec<_> = policy
            .tools
            .iter()
            .map(|(name, rule)| (name.clone(), rule.approval))
            .collect();
        let dangerous: Vec<&str> = policy
            .dangerous
            .iter()
            .map(|pattern| pattern.expression.as_str())
            .collect();
        let answers = (dangerous, &policy.safe_paths);
        let protects = (policy.protect.keyword(), &policy.names);
        let settings = (
            policy.deny_fallback,
            policy.protect_fallback,
            policy.residuals,
            policy.os_sandbox,
            policy.home,
            policy.mode,
            policy.backend,
            policy.channels.clone(),
        );
        format!(
            "{rules:?} {tools:?} {answers:?} {protects:?} {settings:?} {:?}",
            policy.audit.log
        )
    };
    if others(old) == others(new) && same_own_networks(old, new) {
        Ok(())
    } else {
        Err(Mismatch::More("a setting that nobody was asked about".to_owned()))
    }
}

/// Whether rules and tools have the networks of their own that they had; where in the file does not matter.
fn same_own_networks(old: &Policy, new: &Policy) -> bool {
    let mut rest = new.own_networks();
    let kept = old.own_networks().all(|(whose, was)| {
        rest.next()
            .is_some_and(|(who, is)| same_owner(whose, who) && same_network(&was.network, &is.network))
    });
    kept && rest.next().is_none()
}

/// Rules come in their order, which is compared with all else that they say.
fn same_owner(a: NetworkOf<'_>, b: NetworkOf<'_>) -> bool {
    match (a, b) {
        (NetworkOf::Rule(_), NetworkOf::Rule(_)) => true,
        (NetworkOf::Tool(a), NetworkOf::Tool(b)) => a == b,
        (NetworkOf::Rule(_), NetworkOf::Tool(_)) | (NetworkOf::Tool(_), NetworkOf::Rule(_)) => false,
    }
}

fn same_network(a: &Network, b: &Network) -> bool {
    a.within(b).is_ok() && b.within(a).is_ok()
}

fn profiles(policy: &Policy, old: &Profile, new: &Profile, accepted: &[&Change]) -> Result<(), Mismatch> {
    let bound = Bound {
        policy,
        old,
        grants: accepted.iter().filter_map(|change| grant(change)).collect(),
    };
    let more = |witness: Witness| Mismatch::More(witness.what.to_string());
    let less = |witness: Witness| Mismatch::Less(witness.what.to_string());
    files_within(new, &bound).map_err(more)?;
    files_within(old, new).map_err(less)?;
    let hosts = accepted.iter().filter_map(|change| match change {
        Change::Host(place) => Some(HostRule::free(place.clone(), ORIGIN)),
        Change::Root(_) | Change::Widen(_) | Change::List(_) => None,
    });
    let network = match &old.network {
        Network::Full => Network::Full,
        Network::Off => Network::hosts(HostList::new(hosts)),
        Network::Hosts(list) => Network::hosts(HostList::new(list.rules().iter().cloned().chain(hosts))),
    };
    new.network
        .within(&network)
        .map_err(|reached| Mismatch::More(reached.to_string()))?;
    old.network
        .within(&new.network)
        .map_err(|reached| Mismatch::Less(reached.to_string()))?;
    if new.unix_sockets > old.unix_sockets {
        return Err(Mismatch::More(format!("unix sockets {}", new.unix_sockets)));
    }
    if new.unix_sockets < old.unix_sockets {
        return Err(Mismatch::Less(format!("unix sockets {}", old.unix_sockets)));
    }
    if new.limits != old.limits || new.environment != old.environment {
        return Err(Mismatch::More("other limits, or another environment".to_owned()));
    }
    Ok(())
}

const ORIGIN: Origin = Origin::Builtin("what was accepted");

fn grant(change: &Change) -> Option<Grant> {
    let of = |path: &AbsPath, scope, rights| Grant {
        scope,
        ..Grant::tree(path.clone(), rights, ORIGIN)
    };
    match change {
        Change::Root(root) => Some(of(&root.path, root.scope, root.rights)),
        Change::Widen(root) => Some(of(&root.path, root.scope, root.rights)),
        Change::List(path) => Some(of(path, Scope::Names, Rights::READ)),
        Change::Host(_) => None,
    }
}

/// The old profile with what was accepted, as far as neither a deny of the config nor a ceiling takes it.
struct Bound<'a> {
    policy: &'a Policy,
    old: &'a Profile,
    grants: Vec<Grant>,
}

impl FileReach for Bound<'_> {
    fn name(&self) -> &'static str {
        "the config and what was accepted"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.policy.landmarks(landmarks);
        self.old.landmarks(landmarks);
        self.grants.iter().for_each(|grant| landmarks.path(&grant.path));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let old = self.old.prepared();
        let left = move |operation: Operation, path: &AbsPath| {
            let denies = self.policy.roots.iter().flat_map(|root| &root.denies);
            let own = denies
                .map(|deny| deny.leaves(operation, path))
                .fold(Access::Full, Access::min);
            let ceilings = self.policy.ceilings.all.iter();
            ceilings
                .map(|ceiling| ceiling.policy.access(operation, path))
                .fold(own, Access::min)
        };
        Box::new(move |path| {
            let before = old(path);
            let granted = |operation| {
                self.grants
                    .iter()
                    .map(|grant| grant.gives(operation, path))
                    .fold(Access::Denied, Access::max)
            };
            Reach::of(|operation| match granted(operation) {
                Access::Denied => before.get(operation),
                granted => before.get(operation).max(granted.min(left(operation, path))),
            })
        })
    }
}
