#!/usr/bin/env bash
# The quick look before a commit: format, lints, unit tests, architecture, documents, and that the fuzz targets still
# compile and hold on the kept inputs. The laws of the access model take a minute more: `scripts/test.sh`, the suite, has them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --check
cargo fmt --check --manifest-path fuzz/Cargo.toml
cargo clippy --locked --all-targets -- -D warnings
cargo nextest run --locked --lib --bins --test pure --test-threads "$(($(nproc) * 2))" --status-level fail \
    -E 'not (binary(pure) & test(/^laws::/))'
