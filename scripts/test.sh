#!/usr/bin/env bash
# Everything: format, lints, all tests as root and as an ordinary user, doc tests, documentation, fuzz targets for
# a minute or twenty seconds each, a release build that runs a command. Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
#
#   scripts/test.sh               all of it
#   scripts/test.sh --no-install  fail, instead of installing, where a Debian package is missing
#
# Who runs the tests. As root, they run as root first; then what depends on the user runs again as a user that is made
# for the purpose and removed at the end. As an ordinary user it is the other way round, through sudo; without sudo
# nothing runs as root, and the script says so.
#
# Nothing runs beside the tests that takes anything from them: they measure time, and bombs go off in them. What is
# optimized is compiled meanwhile, on time of the processors that nothing else wants.
#
# What must be there. Kernel and programs are declared, never guessed: a regime or a program that is missing fails its
# tests. STOCKADE_TEST_REQUIRE narrows the declaration, as a comma-separated list of `root`, `user`, `audit` (root may switch
# kernel audit on, for a moment), `cgroups` (root may hand over control groups of cgroup v2; required only where it is listed) and programs (`git`, `rsync`, …): what is listed and missing fails, what is not listed and missing is passed over, `none` requires nothing.
set -euo pipefail
umask 022
PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}" INSTA_UPDATE=no
# Most of them wait for other processes most of the time: twice as many as there are processors keep these busy.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) * 2))}"

# What is done next, and how long all before it took.
say() { printf '\n== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
die() { printf 'test.sh: %s\n' "$*" >&2; exit 1; }

install=yes
for argument in "$@"; do
    case "$argument" in
        --no-install) install=no ;;
        *) die "unknown argument $argument; see the top of scripts/test.sh" ;;
    esac
done

invoker_is_root() { [[ $EUID -eq 0 ]]; }
# Only where somebody can type a password may sudo ask for one.
sudo_flags=(-n); [[ -t 0 ]] && sudo_flags=()
can_sudo() { command -v sudo >/dev/null && sudo "${sudo_flags[@]}" true 2>/dev/null; }
as_root() { if invoker_is_root; then "$@"; else sudo "${sudo_flags[@]}" "$@"; fi; }

# ---- 1. What the tests need -------------------------------------------------------------------------------------

# Debian packages that are missing, by the program that the tests start.
missing_packages() {
    local program package
    while read -r program package; do
        command -v "$program" >/dev/null || echo "$package"
    done <<-'LIST'
		gcc gcc
		g++ g++
		ld binutils
		make make
		git git
		python3 python3
		pytest python3-pytest
		tar tar
		find findutils
		rsync rsync
		tmux tmux
		node nodejs
		npm npm
		setfacl acl
		setfattr attr
		ps procps
		setpriv util-linux
		bwrap bubblewrap
		ip iproute2
		openssl openssl
		curl curl
		systemd-analyze systemd
	LIST
    # The system's python, which is the one an ordinary user gets.
    /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

provide_packages() {
    local -a missing
    mapfile -t missing < <(missing_packages | sort -u)
    [[ ${#missing[@]} -eq 0 ]] && return
    [[ $install == yes ]] || die "missing packages: ${missing[*]}"
    command -v apt-get >/dev/null || die "install what provides these Debian packages, then run again: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

provide_toolchain() {
    command -v cargo >/dev/null || die "cargo is not on PATH; install Rust first"
    local component
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || die "cargo $component is missing; install it with your Rust"
        rustup component add "${component/fmt/rustfmt}"
    done
}

# A kernel can lose the ability to install seccomp filters: whoever tries then waits for ever and cannot be killed. So
# nobody here waits for the one that tries.
kernel_takes_filters() {
    local said="" status=0
    read -r -t 20 said < <(python3 -c '
import ctypes
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Instruction))]
allow = Instruction(0x06, 0, 0, 0x7FFF0000)
libc = ctypes.CDLL(None, use_errno=True)
def prctl(option, one, two=0):
    if libc.prctl(option, ctypes.c_ulong(one), two, ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise SystemExit(f"prctl {option}: error {ctypes.get_errno()}")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
prctl(PR_SET_NO_NEW_PRIVS, 1, ctypes.c_ulong(0))
prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(1, ctypes.pointer(allow))))
print("taken")' </dev/null 2>&1) || status=$?
    [[ $said != taken ]] || return 0
    # What read says when its time is over.
    [[ $status -le 128 ]] || die "this kernel installs no seccomp filter any more; restart the machine"
    die "this kernel takes no seccomp filter: ${said:-no answer}"
}

# ---- 2. The other user ------------------------------------------------------------------------------------------

# Not TMPDIR or /tmp: it may have to hold a build, and another user must reach it.
scratch=$(mktemp -d /var/tmp/stockade-scripts.XXXXXX)
chmod 755 "$scratch"
ahead="" test_user="" other_uid="" other_gid="" owned_before=""
clean_up() {
    [[ -z $ahead ]] || kill -- "-$ahead" 2>/dev/null || true
    [[ -z $test_user ]] || userdel "$test_user" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

make_test_user() {
    # Stockade finds its own state through the passwd entry, so the account has a home that is its own.
    mkdir "$scratch/home"
    if useradd --no-create-home --home-dir "$scratch/home" --shell /usr/sbin/nologin --user-group "stockade-test-$$" 2>/dev/null; then
        test_user="stockade-test-$$"
        other_uid=$(id -u "$test_user") other_gid=$(id -g "$test_user")
    else
        say "no account can be made here: the tests of an ordinary user run without a passwd entry"
        other_uid=12345 other_gid=12345
    fi
    chown "$other_uid:$other_gid" "$scratch/home"
    export STOCKADE_TEST_UID="$other_uid"
    # Somebody may have had this number before.
    owned_before=$(owned_by_other) || true
}

# What belongs to the other one where tests put things, one path a line.
owned_by_other() {
    find /tmp /var/tmp /dev/shm /run -xdev -path "$scratch" -prune -o -user "$other_uid" -prune -print 2>/dev/null | sort
}

# Runs a program as the other one: an ordinary user for root, root for an ordinary user.
as_other() {
    local -a env=(
        "PATH=$other_path" "LANG=C.UTF-8" "TERM=dumb" "RUST_BACKTRACE=${RUST_BACKTRACE:-0}" "INSTA_UPDATE=no"
        "CARGO_MANIFEST_DIR=$PWD" "CARGO_PKG_NAME=stockade" "STOCKADE_TEST_REQUIRE=$other_required"
        "RUST_TEST_THREADS=$RUST_TEST_THREADS"
    )
    [[ -z ${RUSTUP_HOME:-} ]] || env+=("RUSTUP_HOME=$RUSTUP_HOME")
    if invoker_is_root; then
        setpriv --reuid="$other_uid" --regid="$other_gid" --clear-groups --inh-caps=-all \
            env -i "${env[@]}" HOME="$scratch/home" "$@" </dev/null
    else
        sudo "${sudo_flags[@]}" env -i "${env[@]}" HOME=/root STOCKADE_TEST_UID="$(id -u)" "$@" </dev/null
    fi
}
programs=git,make,python3,pytest,tmux,tar,find,rsync,npm,node,bwrap,systemd-analyze,mcp-servers,ip,openssl,curl,setfacl
other_path=/usr/local/bin:/usr/bin:/bin other_required=none

# A checkout that the ordinary user cannot read is copied to where it can be, and tested there.
test_a_copy_if_closed() {
    local target="${CARGO_TARGET_DIR:-target}"
    mkdir -p "$target"
    # shellcheck disable=SC2016 # expanded by the inner shell
    if as_other sh -c 'cd "$1" && cd "$2" && cd "$1" && test -z "$(find . -path ./target -prune -o -path ./.git -prune -o ! -readable -print)"' \
        sh "$PWD" "$target" 2>/dev/null
    then
        return
    fi
    say "this checkout is closed to other users: testing a copy of it"
    mkdir "$scratch/copy"
    tar --exclude=./target --exclude=./.git -cf - . | tar -C "$scratch/copy" --no-same-owner -xf -
    chmod -R a+rX "$scratch/copy"
    unset CARGO_TARGET_DIR
    cd "$scratch/copy"
}

# ---- 3. Running and counting ------------------------------------------------------------------------------------

# The most seconds that one test program may take.
longest=900
passed=0 failed=0
failures=()
fail() { failed=$((failed + ${2:-1})); failures+=("$1"); }

# step NAME COMMAND…: one check that passes or fails.
step() {
    say "$1"
    if "${@:2}"; then passed=$((passed + 1)); else fail "$1"; fi
}

# suite NAME COMMAND…: counts what libtest and nextest report; a suite that breaks without a report is one failure.
suite() {
    say "$1"
    local log="$scratch/log" status=0 good bad
    "${@:2}" 2>&1 | tee "$log" || status=$?
    read -r good bad < <(sed -E 's/\x1b\[[0-9;]*m//g' "$log" | awk '
        /^test result: / || /^ *Summary \[/ {
            for (i = 2; i <= NF; i++) {
                word = $i; sub(/[^a-z].*$/, "", word)
                if (word == "passed") good += $(i - 1)
                # A test that ran out of time or left something running has not passed.
                if (word == "failed" || word == "timed") bad += $(i - 1)
            }
        }
        END { print good + 0, bad + 0 }')
    passed=$((passed + good))
    if [[ $bad -gt 0 ]]; then fail "$1" "$bad"; elif [[ $status -ne 0 ]]; then fail "$1"; fi
}

lint() { cargo clippy --locked --all-targets -- -D warnings; }

run_as_invoker() {
    # A test plays the examples. A program that hangs is a failure of that program, not of all that would come after it.
    cargo build --locked --examples --quiet &&
        cargo test --locked --no-fail-fast --tests --quiet --config "target.'cfg(unix)'.runner = ['timeout', '--kill-after=10', '$longest']"
}

# The test programs that depend on who runs them, one a line. Where root runs the tests, what acts as both users by itself,
# in each of its tests, has done so already. `confinement` and `tree` run again all the same, with nothing of root above them.
test_programs() {
    local both=""
    ! invoker_is_root || both="approval approvals approver_program attacked audit bwrap_kernel container control_groups differential exit_codes explain
        file_tools fork_bomb limits mcp mcp_http namespaces network offered older_landlock protected replaced same_answers same_sandbox scale stopped
        stories terminal upstream waiting without_landlock"
    cargo test --locked --no-run --tests --message-format=json 2>/dev/null | python3 -c '
import json, sys
done = {"architecture", "profile_laws", "documents", *sys.argv[1].split()}
for line in sys.stdin:
    message = json.loads(line)
    built = message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]
    if built and message["target"]["name"] not in done:
        print(message["executable"])' "$both"
}

# An empty CARGO_TARGET_TMPDIR for the one who comes next: what one user compiled there, another cannot replace.
empty_target_tmp() {
    local tmp="${CARGO_TARGET_DIR:-target}/tmp"
    as_root rm -rf "$tmp"
    mkdir "$tmp"
    [[ -z ${1:-} ]] || chown "$1" "$tmp"
}

run_as_other() {
    local program status=0
    empty_target_tmp "${other_uid:+$other_uid:$other_gid}"
    while read -r program <&3; do
        printf '%s\n' "-- ${program##*/}"
        as_other timeout --kill-after=10 "$longest" "$program" --quiet || status=1
    done 3< <(test_programs)
    empty_target_tmp
    return $status
}

nothing_is_left() {
    local left
    # A zombie is dead: whether what was left to init is reaped at once is up to the machine's init.
    left=$(
        ps -o stat=,pid=,args= -u "$other_uid" | grep -v '^Z' || true
        comm -13 <(printf '%s\n' "$owned_before") <(owned_by_other)
    )
    [[ -z $left ]] || { printf 'left behind by the tests:\n%s\n' "$left"; return 1; }
}

# Configs, profiles, command lines and messages: what is read here before anything is known of who wrote it.
strangers=(config sbpl shell wire)

# As it is shipped, but optimized as little as the fuzz targets are: optimizing takes as long as all the rest.
build_release() {
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo build --release --locked --config profile.release.package.stockade.opt-level=1
}

# Compiles what takes longest and is needed last, in a process group of its own. Whatever becomes of it, the steps that
# need it compile what is missing, and are the ones that count.
build_ahead() {
    set -m
    (
        ionice --class idle --pid $BASHPID
        chrt --idle --pid 0 $BASHPID
        scripts/clients.sh --install
        scripts/fuzz.sh --build
        build_release
    ) >/dev/null 2>&1 </dev/null &
    ahead=$!
    set +m
}

# Waits for it, which is in nobody's way any more.
built_ahead() {
    local process
    for process in $(pgrep --pgroup "$ahead"); do chrt --other --all-tasks --pid 0 "$process" || true; done 2>/dev/null
    wait "$ahead" || true
    ahead=""
}

# The first command of the README, in a repository of its own.
release_runs_a_command() (
    target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
    mkdir "$scratch/first" && cd "$scratch/first" || return
    git init --quiet && "$target/release/stockade" run -- git status
)

provide_packages
kernel_takes_filters
provide_toolchain
if invoker_is_root; then
    make_test_user
    test_a_copy_if_closed
    toolchain=$(dirname "$(command -v cargo)")
    if as_other "$toolchain/cargo" --version >/dev/null 2>&1; then
        other_path="$toolchain:$other_path" programs="$programs,cargo"
    else
        say "this toolchain is closed to other users: what runs cargo confined is tested as root only"
    fi
    # An ordinary user cannot be root, whatever is required.
    other="an ordinary user" other_required=${STOCKADE_TEST_REQUIRE-user,$programs}
    other_required=${other_required//root/}
else
    other=root other_required=${STOCKADE_TEST_REQUIRE-root,user,audit,$programs}
    export STOCKADE_TEST_REQUIRE="${STOCKADE_TEST_REQUIRE-user,$programs,cargo}"
    STOCKADE_TEST_REQUIRE=${STOCKADE_TEST_REQUIRE//root/}
    if ! can_sudo; then
        say "no sudo: NOTHING IS TESTED AS ROOT; run this as root for the other half"
        other=""
    fi
fi

step "format" cargo fmt --check
step "format of the fuzz targets" cargo fmt --check --manifest-path fuzz/Cargo.toml
step "lints" lint
step "installing the MCP servers that tests drive" scripts/upstream-servers.sh
say "building the tests"
cargo test --locked --no-run || die "the tests do not compile"
build_ahead
suite "tests as $(id -un)" run_as_invoker
[[ -z $other ]] || suite "tests as $other" run_as_other
! invoker_is_root || step "nothing is left of the tests" nothing_is_left
suite "real MCP clients" scripts/clients.sh
step "MCP conformance" tests/conformance/run.sh
suite "doc tests" cargo test --locked --doc --quiet
# With private items: a folder's story links to its private files.
step "documentation" env RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --no-deps --document-private-items --quiet
say "compiling fuzz targets and a release, as far as it has not been done beside the tests"
built_ahead
suite "fuzz targets of what strangers write" scripts/fuzz.sh --seconds 60 "${strangers[@]}"
suite "the other fuzz targets" scripts/fuzz.sh --seconds 20 --but "${strangers[@]}"
step "release build" build_release
step "the first command of the README" release_runs_a_command

say "done"
for failure in "${failures[@]}"; do printf 'failed: %s\n' "$failure"; done
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
