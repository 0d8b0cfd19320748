//! The fuzz targets. Each checks laws on one input, not only that nothing panics, and works within `bounds`.
//!
//! The fuzzer runs them, and so do the crate's own tests, on the kept corpora (`tests/pure/corpora.rs`).

pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod hosts;
pub(crate) mod proxy;
pub(crate) mod sbpl;
pub(crate) mod server;
pub(crate) mod shell;
pub(crate) mod trust;
pub(crate) mod wire;

/// Checks the laws on one input; panics where one is broken.
pub(crate) type Target = fn(&[u8]);

/// Every target by its name, which is also that of its corpus.
pub(crate) const TARGETS: &[(&str, Target)] = &[
    ("audit", audit::run),
    ("config", config::run),
    ("hosts", hosts::run),
    ("proxy", proxy::run),
    ("sbpl", sbpl::run),
    ("server", server::run),
    ("shell", shell::run),
    ("trust", trust::run),
    ("wire", wire::run),
];
