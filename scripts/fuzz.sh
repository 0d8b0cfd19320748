#!/usr/bin/env bash
# Runs the fuzz targets of fuzz/, coverage-guided, two at a time. Stable Rust and a C++ compiler are all it needs.
#
#   scripts/fuzz.sh                        every target for a minute
#   scripts/fuzz.sh --seconds 600 wire     some of them, for longer
#   scripts/fuzz.sh --but wire config      all but these
#   scripts/fuzz.sh --build                none of them: compiles, and no more
#   STOCKADE_FUZZ_SEED=2 scripts/fuzz.sh   another way through (the same seed tries the same inputs in the same order)
#   scripts/fuzz.sh --keep wire            afterwards adds to fuzz/corpus/ what reached something new
#
# Ends with libtest's line, `test result: …`. An input that breaks a law is kept as fuzz/found/TARGET-…, and shown:
#
#   STOCKADE_FUZZ=TARGET target/release/stockade-fuzz fuzz/found/TARGET-…    runs it again
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

seconds=60 keep=no but=no build=no
targets=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --seconds) seconds=$2; shift ;;
        --keep) keep=yes ;;
        --but) but=yes ;;
        --build) build=yes ;;
        -*) printf 'fuzz.sh: unknown argument %s; see the top of scripts/fuzz.sh\n' "$1" >&2; exit 1 ;;
        *) targets+=("$1") ;;
    esac
    shift
done
mapfile -t all < <(basename --suffix=.rs fuzz/src/targets/*.rs | grep -vx mod)
for target in "${targets[@]}"; do
    [[ -e fuzz/src/targets/$target.rs ]] || { printf 'fuzz.sh: no target %s; there are: %s\n' "$target" "${all[*]}" >&2; exit 1; }
done
if [[ ${#targets[@]} -eq 0 ]]; then
    targets=("${all[@]}")
elif [[ $but == yes ]]; then
    mapfile -t targets < <(printf '%s\n' "${all[@]}" | grep -vxF "$(printf '%s\n' "${targets[@]}")")
fi

# The same versions as what is shipped; cargo adds the few crates that are the fuzzer's own.
cp Cargo.lock fuzz/Cargo.lock
RUSTC_WRAPPER="$PWD/scripts/fuzz-rustc.sh" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" \
    cargo build --quiet --release --manifest-path fuzz/Cargo.toml
[[ $build == no ]] || exit 0
program="${CARGO_TARGET_DIR:-$PWD/target}/release/stockade-fuzz"

# In memory where there is room for it: targets write files. Tests that look for what a run left take what is called so for
# a test's.
scratch=$(mktemp -d /dev/shm/stockade-test-fuzz.XXXXXX 2>/dev/null || mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p fuzz/found

# fuzz TARGET: one run, from the kept corpus into one of its own.
fuzz() {
    local target=$1
    local -a words=() seeds=("fuzz/corpus/$target")
    [[ ! -e fuzz/$target.dict ]] || words=("-dict=fuzz/$target.dict")
    [[ $target != config ]] || seeds+=(profiles)
    mkdir -p "$scratch/$target/tmp" "$scratch/$target/corpus"
    STOCKADE_FUZZ=$target TMPDIR="$scratch/$target/tmp" RUST_BACKTRACE=0 "$program" \
        -seed="${STOCKADE_FUZZ_SEED:-1}" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="fuzz/found/$target-" "${words[@]}" "$scratch/$target/corpus" "${seeds[@]}" \
        >"$scratch/$target/log" 2>&1 || return 1
    [[ $keep == no ]] || STOCKADE_FUZZ=$target TMPDIR="$scratch/$target/tmp" "$program" -merge=1 \
        "fuzz/corpus/$target" "$scratch/$target/corpus" >/dev/null 2>&1
}

told() {
    local log="$scratch/$1/log"
    sed -nE 's/^#[0-9]+[[:space:]]+DONE[[:space:]]+(cov: [0-9]+ ft: [0-9]+).*/\1/p' "$log"
    sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1 inputs/p' "$log"
}

passed=0 failed=0
# finished TARGET STATUS
finished() {
    if [[ $2 -eq 0 ]]; then
        passed=$((passed + 1))
        printf 'fuzz %s ... ok (%s)\n' "$1" "$(told "$1" | paste -sd' ')"
    else
        failed=$((failed + 1))
        printf 'fuzz %s ... FAILED\n' "$1"
        grep -avE '^#|^INFO|^WARNING|NEW_FUNC' "$scratch/$1/log" | tail -n 40
    fi
}

for ((i = 0; i < ${#targets[@]}; i += 2)); do
    fuzz "${targets[i]}" & first=$!
    second=""
    if [[ -n ${targets[i + 1]:-} ]]; then fuzz "${targets[i + 1]}" & second=$!; fi
    status=0; wait "$first" || status=$?
    finished "${targets[i]}" "$status"
    [[ -n $second ]] || continue
    status=0; wait "$second" || status=$?
    finished "${targets[i + 1]}" "$status"
done
if [[ $failed -eq 0 ]]; then word=ok; else word=FAILED; fi
printf '\ntest result: %s. %d passed; %d failed\n' "$word" "$passed" "$failed"
[[ $failed -eq 0 ]]
