//! The fuzz targets, all in one program: `STOCKADE_FUZZ` names the one to run. `scripts/fuzz.sh` builds and runs them.
//!
//! A target is a file in `targets/`, its line in [`TARGETS`], seeds in `corpus/NAME/`, and a dictionary `NAME.dict` if
//! its input has words. It checks laws, not only that nothing panics, and works within `bounds`.

#![no_main]

mod bounds;
mod targets {
    pub(crate) mod audit;
    pub(crate) mod config;
    pub(crate) mod hosts;
    pub(crate) mod proxy;
    pub(crate) mod sbpl;
    pub(crate) mod server;
    pub(crate) mod shell;
    pub(crate) mod trust;
    pub(crate) mod wire;
}

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("audit", targets::audit::run),
    ("config", targets::config::run),
    ("hosts", targets::hosts::run),
    ("proxy", targets::proxy::run),
    ("sbpl", targets::sbpl::run),
    ("server", targets::server::run),
    ("shell", targets::shell::run),
    ("trust", targets::trust::run),
    ("wire", targets::wire::run),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("STOCKADE_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found
        .unwrap_or_else(|| panic!("STOCKADE_FUZZ names no target: `{name}`"))
        .1
});

fuzz_target!(|input: &[u8]| CHOSEN(input));
