#!/usr/bin/env bash
# The quick look before a commit: format, lints, unit tests, laws, documents, architecture, and that the fuzz targets
# still compile and hold on the kept inputs. `scripts/test.sh` is the suite.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --check
cargo fmt --check --manifest-path fuzz/Cargo.toml
cargo clippy --locked --all-targets -- -D warnings
cargo nextest run --locked --lib --bins --test pure --status-level fail
