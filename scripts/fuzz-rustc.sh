#!/usr/bin/env bash
# rustc as scripts/fuzz.sh has cargo call it: with coverage for the project's own crates alone. All others are as a release
# has them, so what is built for one serves the other.
#
# What cargo-fuzz would set, without the sanitizer, which is what needs a nightly compiler. Counters of code that the
# linker drops would lose their table. Cargo does not see these flags: after a change of them, `cargo clean`.
coverage=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Clink-dead-code
)
before=""
for word in "$@"; do
    case "$before $word" in
        "--crate-name stockade" | "--crate-name stockade_fuzz") exec "$@" "${coverage[@]}" ;;
    esac
    before=$word
done
exec "$@"
