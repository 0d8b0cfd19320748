//! What a start costs before any command runs: the parent's steps one by one. Whole starts are in `--bench table`.
//!
//! Run with `cargo bench --bench start`, on a quiet machine.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use stockade::backend::namespaces::NetworkNamespace;
use stockade::backend::seccomp::{self, Attempts, Attributes, Copies, Filters, IpSockets, Role, Settings, UnixDomain};
use stockade::backend::{attributes, landlock};
use stockade::config::{self, Context};
use stockade::policy::{DenyFallback, Residuals};
use stockade::profile::{ApprovedRoots, Call, derive, files_within};

const ROUNDS: usize = 101;

fn main() {
    steps();
}

/// Each step of the default preset's way to a checked plan, in the order of a run.
fn steps() {
    let folder = tempfile::tempdir().unwrap();
    report("context", Context::host);
    let context = Context::host();
    let load = || config::preset("workspace-write", folder.path(), &context).unwrap();
    report("load the preset", load);
    let policy = load().policy;
    let call = Call::of(ApprovedRoots::All);
    report("derive", || derive(&policy, &call));
    let profile = derive(&policy, &call);
    report("hold it against the config", || {
        files_within(&profile, &policy).unwrap();
    });
    let options = landlock::Options {
        abi: 7,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Report,
    };
    report("survey", || landlock::survey(&profile, &options).unwrap());
    let survey = landlock::survey(&profile, &options).unwrap();
    report("lower to Landlock", || {
        landlock::lower(&profile, &survey, &options).unwrap()
    });
    let layer = landlock::lower(&profile, &survey, &options).unwrap().plan;
    report("validate that", || landlock::validate(&layer, &profile).unwrap());
    report("attributes, lowered and validated", || {
        files_within(&attributes::lower(&profile.grants, &profile.denies, None), &profile).unwrap();
    });
    let settings = Settings {
        ip: IpSockets::of(&profile.network, NetworkNamespace::Host),
        unix: UnixDomain::of(profile.unix_sockets, 7),
        role: Role::Command,
        attempts: Attempts::Unseen,
        copies: Copies::None,
        attributes: Attributes::Brokered,
    };
    let forker = Settings {
        role: Role::Forker,
        ..settings
    };
    let lower = || Filters {
        forker: seccomp::lower(forker).unwrap(),
        command: seccomp::lower(settings).unwrap(),
        mounted: None,
    };
    report("lower to seccomp", lower);
    let filters = lower();
    report("validate that", || {
        seccomp::validate(filters.of(Role::Forker), forker).unwrap();
        seccomp::validate(filters.of(Role::Command), settings).unwrap();
    });
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn report<T>(what: &str, mut work: impl FnMut() -> T) {
    let first = timed(&mut work);
    let usual = median((0..ROUNDS).map(|_| timed(&mut work)).collect());
    println!("{what:40} first {first:>10.2?}   median {usual:>10.2?}");
}
