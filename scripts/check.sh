#!/usr/bin/env bash
# The quick look before a commit: format, lints, unit tests, architecture, and that the fuzz targets still compile. `scripts/test.sh` is the whole of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked --lib --bins --test architecture
# What only a fuzzer may reach is behind this; the whole run builds them with coverage as well.
cp Cargo.lock fuzz/Cargo.lock
RUSTFLAGS="--cfg fuzzing" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/fuzz-check" \
    cargo check --quiet --manifest-path fuzz/Cargo.toml
