# What scripts/test.sh and scripts/release-check.sh share: what must be installed, the second user, running and counting.
# Sourced from the root of the repository, never run by itself.
# shellcheck shell=bash
umask 022
# cargo finds its subcommands in the last of these, wherever it lies itself.
PATH="$PATH:/usr/sbin:/sbin:${CARGO_HOME:-$HOME/.cargo}/bin"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}" INSTA_UPDATE=no
# Most tests wait for other processes most of the time: twice as many as there are processors keep these busy.
threads="${NEXTEST_TEST_THREADS:-$(($(nproc) * 2))}"
unset NEXTEST_TEST_THREADS
target="${CARGO_TARGET_DIR:-target}"

# What is done next, and how long all before it took.
say() { printf '\n== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

invoker_is_root() { [[ $EUID -eq 0 ]]; }
# Only where somebody can type a password may sudo ask for one.
sudo_flags=(-n); [[ -t 0 ]] && sudo_flags=()
can_sudo() { command -v sudo >/dev/null && sudo "${sudo_flags[@]}" true 2>/dev/null; }
as_root() { if invoker_is_root; then "$@"; else sudo "${sudo_flags[@]}" "$@"; fi; }

# ---- What the tests need ----------------------------------------------------------------------------------------

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

# provide_packages yes|no: installs what is missing, or says what it is.
provide_packages() {
    local -a missing
    mapfile -t missing < <(missing_packages | sort -u)
    [[ ${#missing[@]} -eq 0 ]] && return
    [[ $1 == yes ]] || die "missing packages: ${missing[*]}"
    command -v apt-get >/dev/null || die "install what provides these Debian packages, then run again: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# Installed where there is none; .config/nextest.toml says which older ones do.
nextest_version=0.9.143

# provide_toolchain yes|no
provide_toolchain() {
    command -v cargo >/dev/null || die "cargo is not on PATH; install Rust first"
    local component
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        [[ $1 == yes ]] || die "cargo $component is missing; install it with your Rust"
        command -v rustup >/dev/null || die "cargo $component is missing; install it with your Rust"
        rustup component add "${component/fmt/rustfmt}"
    done
    cargo nextest --version >/dev/null 2>&1 && return
    [[ $1 == yes ]] || die "cargo-nextest is missing; cargo install --locked cargo-nextest@$nextest_version"
    say "installing cargo-nextest $nextest_version (once; it compiles for some minutes)"
    cargo install --quiet --locked "cargo-nextest@$nextest_version"
}

# A kernel can lose the ability to install seccomp filters: a process that tries then waits for ever and cannot be
# killed. So this does not wait for the one that tries.
kernel_takes_filters() {
    local answer="" status=0
    read -r -t 20 answer < <(python3 -c '
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
    [[ $answer != taken ]] || return 0
    # The status of a read whose time is over.
    [[ $status -le 128 ]] || die "this kernel installs no seccomp filter any more; restart the machine"
    die "this kernel takes no seccomp filter: ${answer:-no answer}"
}

# ---- The second user --------------------------------------------------------------------------------------------

# Not TMPDIR or /tmp: it may have to hold a build, and another user must reach it.
scratch=$(mktemp -d /var/tmp/stockade-scripts.XXXXXX)
chmod 755 "$scratch"
test_user="" other_uid="" other_gid="" owned_before="" background=()
clean_up() {
    local group
    for group in "${background[@]}"; do kill -- "-$group" 2>/dev/null || true; done
    if [[ -n $test_user ]]; then
        # An account with a process is not removed.
        pkill -KILL -u "$other_uid" || true
        userdel "$test_user" 2>/dev/null || printf '%s: the account %s could not be removed\n' "${0##*/}" "$test_user" >&2
    fi
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
    # An earlier account may have had this number.
    owned_before=$(owned_by_other) || true
}

# What belongs to the second user where tests put things, one path a line.
owned_by_other() {
    find /tmp /var/tmp /dev/shm /run -xdev -path "$scratch" -prune -o -user "$other_uid" -prune -print 2>/dev/null | sort
}

# Runs a program as the second user: an ordinary user for root, root for an ordinary user.
as_other() {
    local -a env=(
        "PATH=$other_path" "LANG=C.UTF-8" "TERM=dumb" "RUST_BACKTRACE=${RUST_BACKTRACE:-0}" "INSTA_UPDATE=no"
        "STOCKADE_TEST_REQUIRE=$other_required" "CARGO_TERM_COLOR=never"
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
other_path=/usr/local/bin:/usr/bin:/bin other_required=none other="" other_tests=()

# Decides who the second user is, and what each of the two must find: sets `other`, empty where there is none.
provide_second_user() {
    if invoker_is_root; then
        make_test_user
        test_a_copy_if_closed
        local toolchain; toolchain=$(dirname "$(command -v cargo)")
        if as_other "$toolchain/cargo" --version >/dev/null 2>&1; then
            other_path="$toolchain:$other_path" programs="$programs,cargo"
        else
            say "this toolchain is closed to other users: what runs cargo confined is tested as root only"
        fi
        # An ordinary user cannot be root, whatever is required.
        other="an ordinary user" other_tests=(--profile second-user) other_required=${STOCKADE_TEST_REQUIRE-user,$programs}
        other_required=${other_required//root/}
    else
        # An ordinary user could not act as root: all tests run again.
        other=root other_required=${STOCKADE_TEST_REQUIRE-root,user,$programs}
        export STOCKADE_TEST_REQUIRE="${STOCKADE_TEST_REQUIRE-user,$programs,cargo}"
        STOCKADE_TEST_REQUIRE=${STOCKADE_TEST_REQUIRE//root/}
        if ! can_sudo; then
            say "no sudo: NOTHING IS TESTED AS ROOT; run this as root for the other half"
            other=""
        fi
    fi
    cp "$(command -v cargo-nextest)" "$scratch/cargo-nextest"
    chmod 755 "$scratch/cargo-nextest"
}

# A checkout that the ordinary user cannot read is copied to where it can be, and tested there.
test_a_copy_if_closed() {
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
    target=target
    cd "$scratch/copy"
}

# Takes a process group that has ended off the list: its number may be another's by the time `clean_up` kills.
forget() {
    local group left=()
    for group in "${background[@]}"; do [[ $group == "$1" ]] || left+=("$group"); done
    background=("${left[@]}")
}

# Runs a program so that TERM and Ctrl-C end it at once: bash hears of a signal when what is in front of it ends.
interruptibly() {
    local status=0
    set -m
    "$@" </dev/null &
    local group=$!
    set +m
    background+=("$group")
    wait "$group" || status=$?
    forget "$group"
    return "$status"
}

# ---- Running and counting ---------------------------------------------------------------------------------------

passed=0 failed=0
failures=()
fail() { failed=$((failed + ${2:-1})); failures+=("$1"); }

# step NAME COMMAND…: one check that passes or fails.
step() {
    say "$1"
    if interruptibly "${@:2}"; then passed=$((passed + 1)); else fail "$1"; fi
}

# count NAME LOG STATUS: counts what libtest and nextest report; a suite that breaks without a report is one failure.
count() {
    local good bad
    read -r good bad < <(sed -E 's/\x1b\[[0-9;]*m//g' "$2" | awk '
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
    if [[ $bad -gt 0 ]]; then fail "$1" "$bad"; elif [[ $3 -ne 0 ]]; then fail "$1"; fi
}

# suite NAME COMMAND…
suite() {
    say "$1"
    local status=0
    # Of what passes, only the number: a whole line each would hide what fails.
    interruptibly followed "${@:2}" || status=$?
    count "$1" "$scratch/log" "$status"
}
followed() {
    "$@" 2>&1 </dev/null | tee "$scratch/log" | awk '
        /^ *PASS / { if (++passed % 250 == 0) { print "  " passed " passed"; fflush() } next }
        { print; fflush() }'
}

# beside KIND NAME COMMAND…: queues a `step` or a `suite` for `start_beside`.
queue=()
beside() { queue+=("$1"$'\x1f'"$2"$'\x1f'"$(printf '%q ' "${@:3}")"); }

# Starts what was queued, one after the other, on time of the processors that nothing else wants. `collect` has the results.
start_beside() {
    mkdir "$scratch/beside"
    set -m
    (
        chrt --idle --pid 0 $BASHPID 2>/dev/null || true
        for index in "${!queue[@]}"; do
            IFS=$'\x1f' read -r _ _ command <<<"${queue[index]}"
            status=0
            eval "$command" >"$scratch/beside/$index.log" 2>&1 </dev/null || status=$?
            echo "$status" >"$scratch/beside/$index.part" && mv "$scratch/beside/$index.part" "$scratch/beside/$index.status"
        done
    ) &
    beside_group=$!
    background+=("$beside_group")
    set +m
}

# Gives what `start_beside` started its share of the processors: what is left to do waits more than it works.
hurry_beside() {
    local process
    for process in $(pgrep --pgroup "$beside_group"); do chrt --other --all-tasks --pid 0 "$process" || true; done 2>/dev/null
}

# Waits for what `start_beside` started, and counts it.
collect() {
    local index kind name log status group="$beside_group"
    for index in "${!queue[@]}"; do
        IFS=$'\x1f' read -r kind name _ <<<"${queue[index]}"
        say "$name"
        while [[ ! -e $scratch/beside/$index.status ]] && kill -0 -- "-$group" 2>/dev/null; do sleep 0.2; done
        log="$scratch/beside/$index.log" status=1
        [[ ! -e $scratch/beside/$index.status ]] || status=$(<"$scratch/beside/$index.status")
        [[ ! -e $log ]] || tail -n 400 "$log"
        case "$kind" in
            suite) count "$name" "$log" "$status" ;;
            step) if [[ $status -eq 0 ]]; then passed=$((passed + 1)); else fail "$name"; fi ;;
        esac
    done
    wait "$group" || true
    forget "$group"
}

# An empty CARGO_TARGET_TMPDIR for the user who comes next: what one compiled there, another cannot replace.
empty_target_tmp() {
    as_root rm -rf "$target/tmp"
    mkdir -p "$target/tmp"
    [[ -z ${1:-} ]] || chown "$1" "$target/tmp"
}

# Describes the compiled tests, so that they run without cargo: it would wait for what is compiled beside them, and the
# second user may not have it.
describe_tests() {
    cargo nextest list --locked --list-type binaries-only --message-format json >"$scratch/binaries.json"
    cargo metadata --locked --format-version 1 >"$scratch/metadata.json"
}

# nextest ARGUMENT…: runs the compiled tests as the invoker.
nextest() { run_nextest "" "$@"; }
# nextest_as_other ARGUMENT…: the same as the second user.
nextest_as_other() {
    local status=0
    empty_target_tmp "${other_uid:+$other_uid:$other_gid}"
    run_nextest as_other "$@" || status=$?
    empty_target_tmp
    return "$status"
}
run_nextest() {
    ${1:+"$1"} "$scratch/cargo-nextest" nextest run --binaries-metadata "$scratch/binaries.json" \
        --cargo-metadata "$scratch/metadata.json" --test-threads "$threads" --no-fail-fast --status-level pass --final-status-level slow "${@:2}"
}

# The tests that scripts/test.sh leaves to the release check, by its parts.
declare -A long=(
    [bwrap]='test(/(root|user)_in_bwrap::/) + test(/^workers::bwrap::/) + (binary(kernel) & test(/^bwrap::/))'
    [landlock-versions]='binary(kernel) & test(/^older_landlock::/)'
    [scale]='binary(kernel) & test(/^scale::/)'
)

# Fails where a test is left out of the suite and is in no part of the release check, or where a part has no test.
every_test_is_run_somewhere() {
    local part status=0 nowhere
    nowhere=$(listed "not default() - (${long[bwrap]}) - (${long[landlock-versions]}) - (${long[scale]})") || return
    [[ -z $nowhere ]] || { printf 'run neither by test.sh nor by release-check.sh:\n%s\n' "$nowhere"; status=1; }
    for part in "${!long[@]}"; do
        [[ -n $(listed "${long[$part]}") ]] || { printf 'the part %s has no test\n' "$part"; status=1; }
    done
    for part in pure cli kernel network mcp reexec; do
        [[ -n $(listed "binary($part)") ]] || { printf 'the program %s has no test\n' "$part"; status=1; }
    done
    return "$status"
}
listed() {
    "$scratch/cargo-nextest" nextest list --binaries-metadata "$scratch/binaries.json" --cargo-metadata "$scratch/metadata.json" \
        --ignore-default-filter --message-format oneline -E "$1"
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

# The first command of the README with the program of `target/$1`, in a repository of its own.
readme_command() (
    built=$(cd "$target/$1" && pwd)
    rm -rf "$scratch/first"
    mkdir "$scratch/first" && cd "$scratch/first" || return
    git init --quiet && "$built/stockade" run -- git status
)

# Says what failed, and ends with the line that counts.
finish() {
    local failure
    say "done"
    for failure in "${failures[@]}"; do printf 'failed: %s\n' "$failure"; done
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [[ $failed -eq 0 ]]
}
