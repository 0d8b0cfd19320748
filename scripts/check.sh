#!/usr/bin/env bash
# The quick look before a commit: format, lints, unit tests, architecture. `scripts/test.sh` is the whole of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
cargo test --locked --lib --bins --test architecture
