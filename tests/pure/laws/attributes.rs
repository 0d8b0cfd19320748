//! The attribute plan never permits a change where its profile does not permit writing in full.

use proptest::prelude::*;
use stockade::backend::attributes::{Denied, Writable, lower};
use stockade::policy::{Access, Operation};
use stockade::profile::files_within;

use crate::laws::make;
use crate::laws::naive;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_attribute_plan_is_never_weaker_than_its_profile(profile in make::profile()) {
        let plan = lower(&profile.grants, &profile.denies, None);
        prop_assert_eq!(files_within(&plan, &profile), Ok(()));
        for (path, names) in make::universe() {
            let full = naive::profile(&profile, Operation::Write, &names) == Access::Full;
            prop_assert!(full || !plan.permits(&path), "{}", path);
        }
    }

    #[test]
    fn a_place_more_or_a_deny_less_is_caught_unless_the_profile_has_it(
        profile in make::profile(),
        at in make::path(),
        tree in any::<bool>(),
        dropped in any::<prop::sample::Index>(),
    ) {
        let lowered = lower(&profile.grants, &profile.denies, None);
        let mut wider = lowered.clone();
        let place = at.as_path().as_os_str().to_owned();
        wider.writable.push(if tree { Writable::Tree(place) } else { Writable::File(place) });
        let mut looser = lowered;
        if !looser.denied.is_empty() {
            let _: Denied = looser.denied.remove(dropped.index(looser.denied.len()));
        }
        for plan in [wider, looser] {
            let verdict = files_within(&plan, &profile);
            let weaker = |(path, names): &(_, _)| {
                plan.permits(path) && naive::profile(&profile, Operation::Write, names) != Access::Full
            };
            let found = make::universe().into_iter().find(weaker);
            prop_assert!(verdict.is_err() || found.is_none(), "{:?}", found);
        }
    }
}
