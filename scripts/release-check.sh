#!/usr/bin/env bash
# The long checks: what scripts/test.sh leaves out because it takes minutes. They run before a release, and a part of
# them whenever its subject changes. Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
#
#   scripts/release-check.sh                 every part
#   scripts/release-check.sh fuzz bwrap      some of them
#   scripts/release-check.sh --since main~5  those whose subject changed since then
#   scripts/release-check.sh --list          what there is, and the subject of each
#   scripts/release-check.sh --no-install …  fail, instead of installing, where a Debian package or a part of Rust is missing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The parts: name | what it proves | the paths that are its subject
parts=(
    "bwrap|what namespaces hold, where bwrap makes them|src/confine src/backend src/policy src/profile src/tools tests/kernel tests/reexec tests/cli tests/common"
    "landlock-versions|older versions of Landlock|src/confine src/backend tests/kernel tests/common tests/helpers"
    "scale|ten thousand calls in a row, a thousand queued, sixty-four at once|src/confine src/tools src/mcp tests/kernel tests/common"
    "conformance|the official MCP conformance suite, in every revision of the protocol|src/mcp src/tools tests/conformance examples/conformance_server"
    "fuzz|every fuzz target for a minute, guided by coverage, with bounds on the heap|src/config src/policy src/profile src/proxy src/audit src/approval src/backend src/confine src/tools fuzz"
    "release|what is built for people and for packages runs the first command of the README|src build.rs profiles"
    "repeat|five runs of the suite's tests in a row, with two busy loops beside them|src tests"
)
# What every part depends on.
common=(Cargo.toml Cargo.lock .config scripts)

list() {
    local part name proves paths
    for part in "${parts[@]}"; do
        IFS='|' read -r name proves paths <<<"$part"
        printf '%-18s %s\n%-18s subject: %s\n' "$name" "$proves" "" "$paths"
    done
}

# The parts whose subject differs from a commit, uncommitted and new files counted.
changed_since() {
    local part name subject
    local -a paths
    for part in "${parts[@]}"; do
        IFS='|' read -r name _ subject <<<"$part"
        read -ra paths <<<"$subject"
        paths+=("${common[@]}")
        ls -d -- "${paths[@]}" >/dev/null || return
        if ! git diff --quiet "$1" -- "${paths[@]}" || [[ -n $(git ls-files --others --exclude-standard -- "${paths[@]}") ]]; then
            echo "$name"
        fi
    done
}

mapfile -t names < <(printf '%s\n' "${parts[@]}" | cut -d'|' -f1)
install=yes since=""
chosen=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --list) list; exit 0 ;;
        --no-install) install=no ;;
        --since) since=${2:?--since needs a commit}; git rev-parse --quiet --verify "$since^{commit}" >/dev/null || { echo "release-check.sh: no commit $since" >&2; exit 1; }; shift ;;
        -*) echo "release-check.sh: unknown argument $1; see the top of scripts/release-check.sh" >&2; exit 1 ;;
        *)
            [[ " ${names[*]} " == *" $1 "* ]] || { echo "release-check.sh: no part $1; --list says what there is" >&2; exit 1; }
            chosen+=("$1")
            ;;
    esac
    shift
done
if [[ -n $since ]]; then
    changed=$(changed_since "$since")
    [[ -z $changed ]] || mapfile -t -O "${#chosen[@]}" chosen <<<"$changed"
    [[ ${#chosen[@]} -gt 0 ]] || { echo "nothing changed since $since that a long check depends on"; exit 0; }
elif [[ ${#chosen[@]} -eq 0 ]]; then
    chosen=("${names[@]}")
fi
wanted() { [[ " ${chosen[*]} " == *" $1 "* ]]; }

. scripts/common.sh
provide_packages "$install"
kernel_takes_filters
provide_toolchain "$install"
provide_second_user
scripts/upstream-servers.sh
say "building the tests"
interruptibly cargo nextest run --locked --no-run || die "the tests do not compile"
describe_tests

# tests NAME FILTER: some tests, as the invoker and as the second user.
tests() {
    suite "$1, as $(id -un)" nextest --profile release-check -E "$2"
    [[ -z $other ]] || suite "$1, as $other" nextest_as_other --profile release-check -E "$2"
}

five_busy_runs() {
    local round loop
    local -a loops=()
    for _ in 1 2; do
        set -m
        (while :; do :; done) &
        loops+=($!)
        set +m
    done
    background+=("${loops[@]}")
    for round in 1 2 3 4 5; do
        suite "run $round of 5 beside two busy loops, as $(id -un)" nextest
        [[ -z $other ]] || suite "run $round of 5 beside two busy loops, as $other" nextest_as_other "${other_tests[@]}"
    done
    kill "${loops[@]}"
    for loop in "${loops[@]}"; do forget "$loop"; done
}

! wanted bwrap || tests "namespaces made by bwrap" "${long[bwrap]}"
! wanted landlock-versions || tests "older Landlock" "${long[landlock-versions]}"
! wanted scale || suite "many calls" nextest --profile release-check -E "${long[scale]}"
! wanted conformance || step "MCP conformance" tests/conformance/run.sh
! wanted fuzz || suite "fuzz targets" scripts/fuzz.sh --seconds 60
if wanted release; then
    for profile in release dist; do
        step "the profile $profile builds" cargo build --quiet --locked --profile "$profile"
        step "the first command of the README, built as $profile" readme_command "$profile"
    done
fi
! wanted repeat || five_busy_runs
! invoker_is_root || step "nothing is left of the tests" nothing_is_left
finish
