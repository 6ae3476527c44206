#!/usr/bin/env bash
# The pinned dependencies against the Python advisory database. Exit code 1: it knows a vulnerability; 0 also where it,
# or pip-audit, cannot be reached. AUDIT_VENV is where pip-audit is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${AUDIT_VENV:-build/audit_venv}
none() {
  echo "audit: $1: nothing was checked"
  exit 0
}
if ! [ -x "$venv/bin/pip-audit" ]; then
  python3 -m venv "$venv"
  timeout 300 "$venv/bin/pip" install -q pip-audit==2.10.0 || none "pip-audit cannot be installed"
fi
status=0
timeout 300 "$venv/bin/pip-audit" --disable-pip --no-deps -r requirements/core.txt >"$venv/found" 2>"$venv/errors" || status=$?
[ "$status" != 124 ] || none "the advisory database does not answer"
if grep -qE "Could not connect to|requests\.exceptions\.(Connection|Proxy|SSL)Error|requests\.exceptions\.\w*Timeout" "$venv/errors"; then
  none "the advisory database is unreachable"
fi
cat "$venv/found"
cat "$venv/errors" >&2
names=$(grep == requirements/core.txt | sed 's/[=[].*//' | sort -u | wc -l)
if [ "$(grep -c "could not be audited" "$venv/found")" -ge "$names" ]; then
  none "the package index has no advisories"
fi
exit "$status"
