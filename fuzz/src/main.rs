//! The fuzz targets, all in one program: `STOCKADE_FUZZ` names the one to run. `scripts/fuzz.sh` builds and runs them.
//!
//! A target is a file in `targets/`, its line in [`targets::TARGETS`], seeds in `corpus/NAME/`, and a dictionary
//! `NAME.dict` if its input has words.

#![no_main]

mod bounds;
mod heap;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use targets::{TARGETS, Target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("STOCKADE_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found
        .unwrap_or_else(|| panic!("STOCKADE_FUZZ names no target: `{name}`"))
        .1
});

fuzz_target!(|input: &[u8]| CHOSEN(input));
