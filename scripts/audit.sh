#!/usr/bin/env bash
# The pinned dependencies against the Python advisory database; exit code 0 also where the database is unreachable.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! curl -fsS --max-time 10 -o /dev/null https://pypi.org/pypi/pip/json; then
  echo "audit: the advisory database on pypi.org is unreachable: nothing was checked"
  exit 0
fi
venv=build/audit_venv
[ -x "$venv/bin/pip-audit" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install -q pip-audit==2.10.0; }
exec "$venv/bin/pip-audit" --disable-pip --no-deps -r requirements/core.txt
