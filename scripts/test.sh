#!/usr/bin/env bash
# The suite: format, lints, all tests as root and as an ordinary user, real MCP clients, doc tests, documentation. Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
#
#   scripts/test.sh               all of it
#   scripts/test.sh --no-install  fail, instead of installing, where a Debian package or a part of Rust is missing
#
# Long checks are in scripts/release-check.sh; ARCHITECTURE.md says what is proven where.
#
# Who runs the tests. As root, they run as root first; then what depends on the user (`second-user` in
# .config/nextest.toml) runs again as a user that is made for the purpose and removed at the end. As an ordinary user it
# is the other way round, through sudo; without sudo nothing runs as root, and the script says so.
#
# What must be there. Kernel and programs are declared, never guessed: a regime or a program that is missing fails its
# tests. STOCKADE_TEST_REQUIRE narrows the declaration, as a comma-separated list of `root`, `user`,
# `cgroups` (root may hand over control groups of cgroup v2; required only where it is listed) and programs (`git`, `rsync`, …): what is listed and missing fails, what is not listed and missing is passed over, `none` requires nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

install=yes
for argument in "$@"; do
    case "$argument" in
        --no-install) install=no ;;
        *) die "unknown argument $argument; see the top of scripts/test.sh" ;;
    esac
done

provide_packages "$install"
kernel_takes_filters
provide_toolchain "$install"
provide_second_user

# Waits for the network, not for a processor.
set -m
{ scripts/upstream-servers.sh && scripts/clients.sh --install; } >"$scratch/servers.log" 2>&1 </dev/null &
servers=$!
background+=("$servers")
set +m
step "format" cargo fmt --check
step "format of the fuzz targets" cargo fmt --check --manifest-path fuzz/Cargo.toml
say "building the tests"
interruptibly cargo nextest run --locked --no-run || die "the tests do not compile"
describe_tests
step "every test is run somewhere" every_test_is_run_somewhere
wait "$servers" || { cat "$scratch/servers.log"; die "the MCP servers and clients that tests drive could not be installed"; }
forget "$servers"

# The tests turn the feature `fuzzing` on: what is shipped has it off.
beside step "lints of what is shipped" cargo clippy --locked --lib --bins -- -D warnings
beside step "lints" cargo clippy --locked --all-targets -- -D warnings
# With private items: a folder's story links to its private files.
beside step "documentation" env RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --no-deps --document-private-items --quiet
beside suite "doc tests" cargo test --locked --doc --quiet
start_beside

suite "tests as $(id -un)" nextest
[[ -z $other ]] || suite "tests as $other" nextest_as_other "${other_tests[@]}"
! invoker_is_root || step "nothing is left of the tests" nothing_is_left
hurry_beside
suite "real MCP clients" scripts/clients.sh
collect
step "the first command of the README" readme_command debug
finish
