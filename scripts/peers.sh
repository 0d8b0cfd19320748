#!/usr/bin/env bash
# The MCP servers that `cargo bench --bench mcp` measures beside Stockade's, in target/peers, at fixed versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

peers="${CARGO_TARGET_DIR:-target}/peers"
wanted="@modelcontextprotocol/server-filesystem@2026.8.31 mcp-server-commands@0.5.0 cli-mcp-server==0.2.5 mcp==1.30.0"
[[ "$(cat "$peers/installed" 2>/dev/null)" != "$wanted" ]] || exit 0

read -r files commands python sdk <<<"$wanted"
rm -rf "$peers"
mkdir -p "$peers"
npm install --prefix "$peers" --save-exact --ignore-scripts --no-audit --no-fund --loglevel error "$files" "$commands"
python3 -m venv "$peers/venv"
"$peers/venv/bin/pip" install --quiet --disable-pip-version-check "$python" "$sdk"
printf '%s\n' "$wanted" >"$peers/installed"
