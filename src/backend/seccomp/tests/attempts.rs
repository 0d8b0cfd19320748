//! Where somebody looks on: nothing is weaker, nothing else is stricter, and without it nothing is different.

use sha2::{Digest, Sha256};

use super::*;
use crate::backend::seccomp::attempts::{CallKind, DependsOn};

/// The same settings with and without somebody who looks on.
fn pairs() -> impl Iterator<Item = (Settings, Settings)> {
    let heard = [Attempts::Watched, Attempts::WatchedWithLooks];
    unseen_settings().flat_map(move |plain| heard.map(|attempts| (plain, Settings { attempts, ..plain })))
}

/// Every number, and every call whose answer hangs on an argument, at its borders.
fn calls(plain: Settings, watched: Settings) -> Vec<Call> {
    let (plain, watched) = (Table::of(plain), Table::of(watched));
    plain_calls()
        .chain(awkward_calls(&plain))
        .chain(awkward_calls(&watched))
        .chain(socket_calls())
        .chain(combined_calls(&plain))
        .collect()
}

#[test]
fn what_is_refused_is_refused_with_the_same_error_where_somebody_looks_on() {
    for (plain, watched) in pairs() {
        let (unseen, seen) = (Lowered::under(plain), Lowered::under(watched));
        let (without, with) = (read(unseen.stack()).unwrap(), read(seen.stack()).unwrap());
        for call in calls(plain, watched) {
            let expected = stacked(&without, &call);
            let got = stacked(&with, &call);
            match expected {
                Verdict::Errno(errno) if got == Verdict::Notify => {
                    let (sort, _) = CallKind::of(&call, unseen.stack());
                    assert_eq!(sort, Some(CallKind::Refused(errno)), "{plain:?}: {call}");
                }
                Verdict::Errno(_) | Verdict::KillProcess | Verdict::KillThread | Verdict::Trap => {
                    assert_eq!(got, expected, "{plain:?}: {call}");
                }
                Verdict::Allow | Verdict::Log | Verdict::Trace | Verdict::Notify => {}
            }
        }
    }
}

#[test]
fn what_is_permitted_goes_on_or_is_an_attempt_that_goes_on() {
    for (plain, watched) in pairs() {
        let (unseen, seen) = (Lowered::under(plain), Lowered::under(watched));
        let (without, with) = (read(unseen.stack()).unwrap(), read(seen.stack()).unwrap());
        for call in calls(plain, watched) {
            if stacked(&without, &call) != Verdict::Allow {
                continue;
            }
            match stacked(&with, &call) {
                Verdict::Allow => {}
                Verdict::Notify => {
                    assert_eq!(watched.role, Role::Command, "nobody hears the forker: {call}");
                    assert_eq!(
                        CallKind::of(&call, unseen.stack()).0,
                        Some(CallKind::Attempt),
                        "{plain:?}: {call}"
                    );
                }
                other => panic!("{plain:?}: {call}: {other}"),
            }
        }
    }
}

/// The sort of a call that the broker is notified of without `--explain`.
fn handed_over(call: &Call) -> CallKind {
    if is_rename(call.nr.into()) {
        CallKind::Attempt
    } else {
        CallKind::Attribute
    }
}

#[test]
fn a_call_goes_on_only_where_the_filters_of_a_command_that_nobody_looks_at_allow_it() {
    for (plain, watched) in pairs().filter(|(plain, _)| plain.role == Role::Command) {
        let (unseen, seen) = (Lowered::under(plain), Lowered::under(watched));
        let (without, with) = (read(unseen.stack()).unwrap(), read(seen.stack()).unwrap());
        for call in calls(plain, watched) {
            let (sort, _) = CallKind::of(&call, unseen.stack());
            let expected = match stacked(&without, &call) {
                Verdict::Allow if stacked(&with, &call) == Verdict::Notify => Some(CallKind::Attempt),
                // Nothing notifies of it.
                Verdict::Allow => sort,
                Verdict::Notify => Some(handed_over(&call)),
                Verdict::Errno(errno) => Some(CallKind::Refused(errno)),
                Verdict::Log | Verdict::Trace | Verdict::Trap | Verdict::KillThread | Verdict::KillProcess => None,
            };
            assert_eq!(sort, expected, "{plain:?}: {call}");
        }
    }
}

#[test]
fn attribute_calls_and_renames_are_the_broker_s_whether_somebody_looks_on_or_not() {
    for (plain, watched) in pairs().filter(|(plain, _)| plain.role == Role::Command) {
        let (unseen, seen) = (Lowered::under(plain), Lowered::under(watched));
        let (without, with) = (read(unseen.stack()).unwrap(), read(seen.stack()).unwrap());
        for call in calls(plain, watched) {
            if stacked(&without, &call) == Verdict::Notify {
                assert_eq!(stacked(&with, &call), Verdict::Notify, "{call}");
                assert_eq!(
                    CallKind::of(&call, unseen.stack()).0,
                    Some(handed_over(&call)),
                    "{call}"
                );
            }
        }
    }
}

#[test]
fn a_sort_that_is_remembered_by_its_number_is_that_of_every_call_of_the_number() {
    for plain in unseen_settings().filter(|settings| settings.role == Role::Command) {
        let unseen = Lowered::under(plain);
        for call in calls(plain, plain) {
            let any = Call { args: [0; 6], ..call };
            match CallKind::of(&any, unseen.stack()) {
                (sort, DependsOn::Number) => {
                    assert_eq!(CallKind::of(&call, unseen.stack()).0, sort, "{plain:?}: {call}");
                }
                (_, DependsOn::Arguments) => {}
            }
        }
    }
}

#[test]
fn looks_are_heard_of_only_where_that_is_wanted() {
    let heard = |attempts| Settings {
        attempts,
        ..strict(Role::Command)
    };
    for number in [libc::SYS_newfstatat, libc::SYS_readlinkat, libc::SYS_chdir] {
        assert_eq!(answer(heard(Attempts::Watched), number, &[]), Verdict::Allow);
        assert_eq!(answer(heard(Attempts::WatchedWithLooks), number, &[]), Verdict::Notify);
    }
    for attempts in [Attempts::Watched, Attempts::WatchedWithLooks] {
        assert_eq!(answer(heard(attempts), libc::SYS_openat, &[]), Verdict::Notify);
    }
}

#[test]
fn filters_that_cannot_be_read_let_nothing_go_on() {
    let broken = SeccompPlan {
        programs: vec![vec![]],
        notify: None,
    };
    for call in plain_calls() {
        assert_eq!(
            CallKind::of(&call, Stack::of_forker(&broken)),
            (None, DependsOn::Number)
        );
    }
}

#[test]
fn what_would_kill_does_not_go_on() {
    let unseen = Lowered::under(strict(Role::Command));
    let foreign = Call {
        arch: 0x4000_0003,
        nr: u32::try_from(libc::SYS_openat).unwrap(),
        args: [0; 6],
    };
    assert_eq!(CallKind::of(&foreign, unseen.stack()).0, None);
    let native = Call {
        arch: NATIVE_ARCH,
        ..foreign
    };
    assert_eq!(CallKind::of(&native, unseen.stack()).0, Some(CallKind::Attempt));
}

#[test]
fn a_listener_is_refused_by_the_filter_itself() {
    for settings in all_settings() {
        if settings.role == Role::Command {
            assert_eq!(answer(settings, libc::SYS_seccomp, &[1, 8]), Verdict::Errno(16));
        }
    }
}

/// A change of these is a change of what confines commands that nobody looks at.
#[cfg(target_arch = "x86_64")]
#[test]
fn without_somebody_who_looks_on_the_filters_are_what_they_were() {
    let digest = |settings: Settings| {
        let bytes = postcard::to_stdvec(&lower(settings).unwrap()).unwrap();
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        u64::from_be_bytes(*digest.first_chunk().unwrap())
    };
    let settings = [
        strict(Role::Forker),
        strict(Role::Command),
        open(Role::Forker),
        open(Role::Command),
    ];
    assert_eq!(
        settings.map(digest),
        [
            0x507b_55cf_18be_15b3,
            0x9ea4_a93d_ea42_2de7,
            0xed40_a221_87d5_0842,
            0x9ea4_a93d_ea42_2de7
        ]
    );
}
