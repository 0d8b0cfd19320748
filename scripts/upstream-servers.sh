#!/bin/bash
# Installs the published MCP servers that tests/mcp/upstream drives, into target/upstream.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/upstream
npm_server=@modelcontextprotocol/server-filesystem@2026.8.31
pypi_server=mcp-server-git==2026.10.19
mark="$npm_server $pypi_server"

if [[ -f $folder/installed && $(<"$folder/installed") == "$mark" ]]; then
    exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" "$npm_server"
/usr/bin/python3 -m venv --copies "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$pypi_server"
printf '%s\n' "$mark" >"$folder/installed"
