//! Who does not look pays nothing: the plan is the same, byte for byte, but for what is beside it where somebody does.

use stockade::backend::Plan;
use stockade::backend::host::{Host, Maker};
use stockade::backend::landlock::rights::RESOLVE_UNIX_ABI;
use stockade::backend::seccomp::Attempts;
use stockade::config::{self, Context};
use stockade::policy::Explain;
use stockade::profile::{ApprovedRoots, Call, derive};
use stockade::tools::plan::{self, BackendOptions, Mechanism, Surroundings};

#[test]
fn the_plan_of_who_does_not_look_is_that_of_who_does_without_its_watched_filters() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let policy = config::preset("workspace-write", folder.path(), &Context::host())
        .unwrap()
        .policy;
    assert_eq!(policy.explain, Explain::Off);
    let profile = derive(&policy, &Call::of(ApprovedRoots::All));
    let host = Host::quick();
    for mechanism in [Mechanism::Landlock, Mechanism::Namespaces(Maker::Stockade)] {
        let lowered = |attempts| {
            let ground = BackendOptions {
                mechanism,
                landlock_abi: host.landlock_abi.unwrap().min(RESOLVE_UNIX_ABI),
                deny_fallback: policy.deny_fallback,
                residuals: policy.residuals,
                attempts,
            };
            plan::lower(&profile, ground, &Surroundings::default()).unwrap().plan
        };
        let (unseen, watched) = (lowered(Attempts::Unseen), lowered(Attempts::Watched));
        assert!(unseen.watched.is_none() && watched.watched.is_some());
        let bytes = |plan: &Plan| postcard::to_stdvec(plan).unwrap();
        let without = Plan {
            watched: None,
            ..watched
        };
        assert_eq!(bytes(&unseen), bytes(&without));
    }
}
