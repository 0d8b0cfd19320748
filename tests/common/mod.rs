//! What the tests of the built binary share: a scratch world, the people who act in it, and what must be left of it.
//!
//! A [`Fixture`] is a temporary folder with a workspace, a home and things outside the workspace, all owned by one
//! [`Actor`]: root, or an ordinary user (`STOCKADE_TEST_UID`, 1000 by default, where the tests run as root).
//!
//! **What the host must provide** is declared, never guessed: `STOCKADE_TEST_REQUIRE` is a comma-separated list of
//! `root`, `user`, `cgroups` (root may hand over control groups; required only where it is listed) and names of programs (`git`, `rsync`, …). What is listed and missing fails the test; what is not
//! listed and missing is passed over. Unset means that everything is required; `none` that nothing is.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test file uses its own part of this"
)]

pub(crate) mod agent;
pub(crate) mod audited;
mod compiled;
mod process;
mod terminal;
mod without;
mod world;

pub(crate) use compiled::{compiled, compiled_static};
pub(crate) use process::{
    Invocation, PATIENCE, Run, Running, assert_no_process_left, descendants, eventually, kill_marked, marker,
    may_lower_nice_values, may_starve_its_runner, started, stop, wait_for_processes, wait_until_gone, with_marker,
};
pub(crate) use without::without;
pub(crate) use world::{Actor, Backend, Fixture, SECRET, Snapshot, assert_nothing_left_behind, find_program};

/// Whether the declaration in `STOCKADE_TEST_REQUIRE` asks for `thing`.
pub(crate) fn required(thing: &str) -> bool {
    match std::env::var("STOCKADE_TEST_REQUIRE") {
        Err(_) => true,
        Ok(list) => list.split(',').any(|word| word.trim() == thing),
    }
}

/// The fixture for `actor`, with `programs` on its path; `None` where one is missing and not required.
pub(crate) fn world_with(actor: Actor, backend: Backend, programs: &[&str]) -> Option<Fixture> {
    if !actor.is_possible() {
        assert!(
            !required(actor.name()),
            "these tests must run as root to act as {}",
            actor.name()
        );
        return None;
    }
    let bwrap: &[&str] = match backend {
        Backend::Landlock | Backend::Namespaces => &[],
        Backend::Bwrap => &["bwrap"],
    };
    for program in bwrap.iter().chain(programs) {
        if find_program(actor, program).is_none() {
            assert!(
                !required(program),
                "{} has no {program}; see STOCKADE_TEST_REQUIRE",
                actor.name()
            );
            return None;
        }
    }
    Some(Fixture::new(actor, backend))
}

/// Declares one test per actor for each function that takes a fixture: `as_root::name` and `as_user::name`.
macro_rules! as_root_and_as_user {
    ($($(#[$attribute:meta])* $name:ident [$($program:literal),*];)*) => {
        crate::common::declare! { as_root Root Landlock; $($(#[$attribute])* $name [$($program),*];)* }
        crate::common::declare! { as_user User Landlock; $($(#[$attribute])* $name [$($program),*];)* }
    };
}
pub(crate) use as_root_and_as_user;

/// The same in namespaces: `root_in_namespaces::name` and `user_in_namespaces::name`.
macro_rules! in_namespaces {
    ($($(#[$attribute:meta])* $name:ident [$($program:literal),*];)*) => {
        crate::common::declare! { root_in_namespaces Root Namespaces; $($(#[$attribute])* $name [$($program),*];)* }
        crate::common::declare! { user_in_namespaces User Namespaces; $($(#[$attribute])* $name [$($program),*];)* }
    };
}
pub(crate) use in_namespaces;

/// The same in namespaces that bwrap makes: `root_in_bwrap::name` and `user_in_bwrap::name`.
macro_rules! in_bwrap {
    ($($(#[$attribute:meta])* $name:ident [$($program:literal),*];)*) => {
        crate::common::declare! { root_in_bwrap Root Bwrap; $($(#[$attribute])* $name [$($program),*];)* }
        crate::common::declare! { user_in_bwrap User Bwrap; $($(#[$attribute])* $name [$($program),*];)* }
    };
}
pub(crate) use in_bwrap;

/// [`in_namespaces`] and [`in_bwrap`]: what namespaces hold, whoever makes them.
macro_rules! in_all_namespaces {
    ($($tests:tt)*) => {
        crate::common::in_namespaces! { $($tests)* }
        crate::common::in_bwrap! { $($tests)* }
    };
}
pub(crate) use in_all_namespaces;

/// [`as_root_and_as_user`] and [`in_namespaces`]: what both regimes hold.
macro_rules! in_both_regimes {
    ($($tests:tt)*) => {
        crate::common::as_root_and_as_user! { $($tests)* }
        crate::common::in_namespaces! { $($tests)* }
    };
}
pub(crate) use in_both_regimes;

/// One module of tests, for one actor and one backend.
macro_rules! declare {
    ($module:ident $actor:ident $backend:ident; $($(#[$attribute:meta])* $name:ident [$($program:literal),*];)*) => {
        #[cfg(test)]
        mod $module {
            $($(#[$attribute])* #[test] fn $name() {
                let (actor, backend) = (crate::common::Actor::$actor, crate::common::Backend::$backend);
                if let Some(world) = crate::common::world_with(actor, backend, &[$($program),*]) {
                    super::$name(&world);
                }
            })*
        }
    };
}
pub(crate) use declare;
