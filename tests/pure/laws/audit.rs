//! What an auditor is told, held against the access model.

use std::sync::LazyLock;

use proptest::prelude::*;
use stockade::backend::attributes::{self, Denied, Writable};
use stockade::policy::{AbsPath, Access, HostWitness, NetworkWitness, Operation};
use stockade::profile::order::Permission;
use stockade::profile::{Decided, FileReach, diff, files_within, within};

use super::make;
use super::naive::Names;

static UNIVERSE: LazyLock<Vec<(AbsPath, Names)>> = LazyLock::new(make::universe);

const MAX_WITNESSES: usize = usize::MAX;

proptest! {
    #[test]
    fn an_explanation_says_what_the_profile_says_and_names_a_clause_that_is_to_blame(
        profile in make::networked(),
        path in make::path(),
    ) {
        for operation in Operation::ALL {
            let why = profile.explain(operation, &path);
            prop_assert_eq!(why.access, profile.access(operation, &path));
            match why.decided {
                Decided::Grant(grant) => prop_assert_eq!(grant.gives(operation, &path), why.access),
                Decided::Deny(deny) => prop_assert_eq!(deny.leaves(operation, &path), why.access),
                Decided::Nothing => prop_assert_eq!(why.access, Access::Denied),
            }
            // Without all that gives it there is nothing; without all that takes it there is no deny left.
            let mut bare = profile.clone();
            bare.grants.retain(|grant| !why.granted.contains(&grant));
            prop_assert_eq!(bare.access(operation, &path), Access::Denied);
            let mut open = profile.clone();
            open.denies.retain(|deny| !why.denied.contains(&deny));
            let given = profile.grants.iter().map(|grant| grant.gives(operation, &path)).max();
            prop_assert_eq!(open.access(operation, &path), given.unwrap_or(Access::Denied));
        }
    }

    #[test]
    fn a_profile_does_not_differ_from_itself(profile in make::networked()) {
        let (a, b) = diff(&profile, &profile, MAX_WITNESSES);
        prop_assert!(a.is_empty() && b.is_empty());
    }

    #[test]
    fn a_difference_is_the_same_from_both_sides(a in make::networked(), b in make::networked()) {
        let (only_a, only_b) = diff(&a, &b, MAX_WITNESSES);
        prop_assert_eq!(diff(&b, &a, MAX_WITNESSES), (only_b, only_a));
    }

    #[test]
    fn a_difference_is_empty_where_the_order_holds_and_every_witness_is_one(
        a in make::networked(),
        b in make::networked(),
    ) {
        let (only_a, only_b) = diff(&a, &b, MAX_WITNESSES);
        for (excess, wide, tight) in [(only_a, &a, &b), (only_b, &b, &a)] {
            prop_assert_eq!(excess.is_empty(), within(wide, tight).is_ok());
            for witness in excess.witnesses {
                if let Permission::File { operation, path, access } = witness {
                    prop_assert_eq!(wide.access(operation, &path), access);
                    prop_assert!(tight.access(operation, &path) < access);
                } else if let Permission::Network(NetworkWitness::Host(HostWitness { host, port, access, .. })) = witness {
                    prop_assert_eq!(wide.network.access(&host, port), access);
                    prop_assert!(tight.network.access(&host, port) < access);
                }
            }
        }
    }

    #[test]
    fn a_shortened_difference_says_how_much_it_leaves_out(a in make::networked(), b in make::networked()) {
        let (whole, _) = diff(&a, &b, MAX_WITNESSES);
        let (short, _) = diff(&a, &b, 1);
        let files = |excess: &stockade::profile::Excess| {
            excess.witnesses.iter().filter(|w| matches!(w, Permission::File { .. })).count()
        };
        prop_assert_eq!(files(&short) + short.more, files(&whole) + whole.more);
    }

    #[test]
    fn an_attribute_plan_edited_by_hand_is_caught_wherever_it_permits_more(
        profile in make::profile(),
        more in make::path(),
        edit in 0_u8..5,
        at in any::<prop::sample::Index>(),
    ) {
        let mut plan = attributes::lower(&profile.grants, &profile.denies, None);
        prop_assert_eq!(files_within(&plan, &profile), Ok(()));
        let tree = more.as_path().as_os_str().to_owned();
        match edit {
            0 => plan.writable.push(Writable::Tree(tree)),
            1 => plan.writable.push(Writable::File(tree)),
            2 if !plan.denied.is_empty() => {
                let _dropped = plan.denied.remove(at.index(plan.denied.len()));
            }
            3 if !plan.denied.is_empty() => {
                let at = at.index(plan.denied.len());
                plan.denied[at] = Denied::Tree(tree);
            }
            _ => {
                let one = |place: &mut Writable| if let Writable::File(at) = place { *place = Writable::Tree(at.clone()) };
                plan.writable.iter_mut().for_each(one);
            }
        }
        let weaker = UNIVERSE.iter().any(|(path, _)| {
            plan.permits(path) && profile.access(Operation::Write, path) != Access::Full
        });
        let caught = files_within(&plan, &profile);
        if weaker {
            prop_assert!(caught.is_err());
        }
        if let Err(witness) = caught {
            let Permission::File { operation, path, .. } = witness.what else { unreachable!() };
            prop_assert!(plan.permits(&path) && profile.access(operation, &path) < Access::Full);
        }
    }
}
