#!/usr/bin/env bash
# The pinned dependencies against the Python advisory database; exit code 0 also where the database is unreachable.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/audit_venv
if ! [ -x "$venv/bin/pip-audit" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q pip-audit==2.10.0
fi
status=0
"$venv/bin/pip-audit" --disable-pip --no-deps -r requirements/core.txt 2>"$venv/errors" || status=$?
if grep -qE "Could not connect to|requests\.exceptions\.(Connection|Proxy|SSL)Error|requests\.exceptions\.\w*Timeout" "$venv/errors"; then
  echo "audit: the advisory database is unreachable: nothing was checked"
  exit 0
fi
cat "$venv/errors" >&2
exit "$status"
