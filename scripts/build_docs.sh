#!/usr/bin/env bash
# Make the documentation as a site in out/site, with tools of its own in build/docs_venv. The pages load nothing from
# elsewhere, so that they can be read without a network: open out/site/index.html.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/docs_venv
wanted=$(sha256sum requirements/docs.txt)
if [ "$(cat "$venv/.wanted" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input -q -r requirements/docs.txt
    echo "$wanted" >"$venv/.wanted"
fi
"$venv/bin/python" scripts/site_sources.py
NO_MKDOCS_2_WARNING=1 "$venv/bin/python" -m mkdocs build --strict --quiet --config-file build/site/mkdocs.yml
echo "the pages are in out/site; begin with out/site/index.html"
