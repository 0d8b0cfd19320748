//! What a profile takes to derive, lower and check, against the number of its roots.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use stockade::backend::landlock;
use stockade::config::{self, Context};
use stockade::policy::{DenyFallback, Policy, Residuals};
use stockade::profile::{ApprovedRoots, Call, derive, files_within};

use super::programs::Workshop;
use super::sheet::{Sheet, Wanted, Way};

/// How many roots, and what all of it may take for the last.
const SIZES: [(&str, usize); 5] = [
    ("10 roots", 10),
    ("100 roots", 100),
    ("1,000 roots", 1_000),
    ("5,000 roots", 5_000),
    ("20,000 roots", 20_000),
];
const WANTED: Duration = Duration::from_millis(250);

/// Derive, hold against the config, look at the paths, lower to Landlock, and validate what came of it.
pub(crate) fn scale(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("A profile: derived, looked up, lowered to Landlock, and checked at each step");
    let policies: Vec<(&str, Policy)> = SIZES
        .map(|(name, size)| (name, policy(&workshop.beside(&format!("roots{size}")), size)))
        .into();
    let last = policies.len() - 1;
    let ways = policies.iter().enumerate().map(|(place, (name, policy))| {
        let way = Way::new(name, || whole(policy));
        if place == last {
            way.wanted(Wanted::Time(WANTED))
        } else {
            way
        }
    });
    sheet.compare("profile", rounds.min(11), ways.collect());
}

fn policy(folder: &Path, size: usize) -> Policy {
    let mut text = String::from("sandbox:\n  paths:\n");
    for index in 0..size {
        let root = folder.join(format!("{index:x}"));
        fs::create_dir_all(&root).unwrap();
        // One in four says its mode: more words than this no config may have.
        let mode = if index % 4 == 0 { ", mode: rw" } else { "" };
        writeln!(text, "    r{index}: {{root: {index:x}{mode}}}").unwrap();
    }
    let config = folder.join("c.yaml");
    fs::write(&config, text).unwrap();
    let context = Context::host();
    config::load(&config, &context).unwrap().policy
}

fn whole(policy: &Policy) {
    let profile = derive(policy, &Call::of(ApprovedRoots::All));
    files_within(&profile, policy).unwrap();
    let options = landlock::Options {
        abi: 7,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Report,
    };
    let survey = landlock::survey(&profile, &options).unwrap();
    let layer = landlock::lower(&profile, &survey, &options).unwrap().plan;
    landlock::validate(&layer, &profile).unwrap();
    black_box(layer);
}
