//! Which clause decides: the same answer as [`FileReach::access`](super::FileReach::access), with its reasons.

use super::profile::Profile;
use crate::policy::{AbsPath, Access, Deny, Grant, Operation};

/// What is permitted for one operation on one path, and by which clauses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// The answer.
    pub access: Access,
    /// The clause that the answer is due to.
    pub decided: Decided<'a>,
    /// Every grant that gives some of it, the one that gives most first.
    pub granted: Vec<&'a Grant>,
    /// Every deny that takes some of it, the one that leaves least first.
    pub denied: Vec<&'a Deny>,
    /// The grants whose place holds the path and that lack the right, or name other files; the nearest first.
    pub missed: Vec<&'a Grant>,
}

/// The clause that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided<'a> {
    /// This grant gives it, and no deny takes any of it.
    Grant(&'a Grant),
    /// A grant gives it, and this deny takes it, or all above a size.
    Deny(&'a Deny),
    /// No grant gives it.
    Nothing,
}

impl Profile {
    /// Why `operation` on `path` is permitted or not.
    pub fn explain(&self, operation: Operation, path: &AbsPath) -> Explanation<'_> {
        let depth = |grant: &&Grant| grant.path.as_bytes().len();
        let mut granted: Vec<&Grant> = self
            .grants
            .iter()
            .filter(|grant| grant.gives(operation, path) > Access::Denied)
            .collect();
        // Of equal ones the nearest is what a person would look for; the sort is stable, so the answer is too.
        granted.sort_by(|a, b| {
            let order = b.gives(operation, path).cmp(&a.gives(operation, path));
            order.then_with(|| depth(b).cmp(&depth(a))).then_with(|| a.cmp(b))
        });
        let mut missed: Vec<&Grant> = self
            .grants
            .iter()
            .filter(|grant| path.is_within(&grant.path) && grant.gives(operation, path) == Access::Denied)
            .collect();
        missed.sort_by(|a, b| depth(b).cmp(&depth(a)).then_with(|| a.cmp(b)));
        let given = granted
            .first()
            .map_or(Access::Denied, |grant| grant.gives(operation, path));
        let mut denied: Vec<&Deny> = self
            .denies
            .iter()
            .filter(|deny| deny.leaves(operation, path) < Access::Full)
            .collect();
        denied.sort_by(|a, b| {
            let order = a.leaves(operation, path).cmp(&b.leaves(operation, path));
            order.then_with(|| a.cmp(b))
        });
        let left = denied.first().map_or(Access::Full, |deny| deny.leaves(operation, path));
        let decided = match (granted.first(), denied.first()) {
            (None, _) => Decided::Nothing,
            (Some(_), Some(deny)) if left < given => Decided::Deny(deny),
            (Some(grant), _) => Decided::Grant(grant),
        };
        Explanation {
            access: given.min(left),
            decided,
            granted,
            denied,
            missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Environment, Limits, Network, Origin, Rights, UnixSockets};

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn profile(grants: Vec<Grant>, denies: Vec<Deny>) -> Profile {
        Profile {
            grants,
            denies,
            identities: std::collections::BTreeMap::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::None,
            limits: Limits::default(),
            environment: Environment::default(),
        }
    }

    fn line(line: u64) -> Origin {
        Origin::Preset { name: "t".into(), line }
    }

    #[test]
    fn of_two_grants_the_nearer_decides() {
        let grants = vec![
            Grant::tree(at("/a"), Rights::READ, line(1)),
            Grant::tree(at("/a/b"), Rights::READ, line(2)),
        ];
        let profile = profile(grants, vec![]);
        let why = profile.explain(Operation::Read, &at("/a/b/c"));
        assert_eq!(why.decided, Decided::Grant(&profile.grants[1]));
    }

    #[test]
    fn a_deny_decides_over_every_grant() {
        let profile = profile(
            vec![Grant::tree(at("/a"), Rights::ALL, line(1))],
            vec![Deny::tree(at("/a/b"), Rights::WRITE, line(2))],
        );
        let why = profile.explain(Operation::Write, &at("/a/b/c"));
        assert_eq!(
            (why.access, why.decided),
            (Access::Denied, Decided::Deny(&profile.denies[0]))
        );
        let why = profile.explain(Operation::Read, &at("/a/b/c"));
        assert_eq!(
            (why.access, why.decided),
            (Access::Full, Decided::Grant(&profile.grants[0]))
        );
    }

    #[test]
    fn a_grant_of_another_right_is_named_as_the_one_that_missed() {
        let profile = profile(vec![Grant::tree(at("/a"), Rights::READ, line(1))], vec![]);
        let why = profile.explain(Operation::Write, &at("/a/x"));
        assert_eq!((why.decided, why.missed), (Decided::Nothing, vec![&profile.grants[0]]));
    }

    #[test]
    fn a_deny_beyond_a_size_leaves_what_is_smaller() {
        let sized = Deny {
            beyond: Some(7),
            ..Deny::tree(at("/a"), Rights::WRITE, line(2))
        };
        let profile = profile(vec![Grant::tree(at("/a"), Rights::ALL, line(1))], vec![sized]);
        let why = profile.explain(Operation::Write, &at("/a/x"));
        assert_eq!(
            (why.access, why.decided),
            (Access::UpTo(7), Decided::Deny(&profile.denies[0]))
        );
    }
}
