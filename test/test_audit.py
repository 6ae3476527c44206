"""``make audit`` says what the database knows, and fails for nothing else."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINNED = sorted(set(re.findall(r"^([\w.-]+)[^#\n]*==", (ROOT / "requirements/core.txt").read_text(), flags=re.M)))
SKIPPED = "\n".join(f"{line} Dependency not found on PyPI and could not be audited" for line in PINNED)
CASES = {
    "clean": ("", "No known vulnerabilities found", 0, "No known"),
    "known": (f"{PINNED[0]} CVE-2026-1", "Found 1 known vulnerability", 1, "CVE-2026-1"),
    "unreachable": ("", "requests.exceptions.ConnectionError: no route", 1, "nothing was checked"),
    "an index without advisories": (SKIPPED, "No known vulnerabilities found", 0, "nothing was checked"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_audit_says(case, tmp_path):
    found, errors, status, words = CASES[case]
    program = tmp_path / "bin/pip-audit"
    program.parent.mkdir()
    (tmp_path / "said").write_text(found + "\n")
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\necho '{errors}' >&2\nexit {status}\n")
    program.chmod(0o755)
    environment = os.environ | {"AUDIT_VENV": str(tmp_path)}
    ended = subprocess.run([ROOT / "scripts/audit.sh"], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == (1 if case == "known" else 0), ended
    assert words in ended.stdout + ended.stderr


def test_without_pip_audit_nothing_fails(tmp_path):
    """A pip that reaches no index."""
    pip = tmp_path / "bin/pip"
    pip.parent.mkdir()
    pip.write_text("#!/bin/sh\nexit 1\n")
    pip.chmod(0o755)
    (tmp_path / "bin/python3").write_text("#!/bin/sh\n")  # makes no environment
    (tmp_path / "bin/python3").chmod(0o755)
    environment = os.environ | {"AUDIT_VENV": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    ended = subprocess.run([ROOT / "scripts/audit.sh"], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "nothing was checked" in ended.stdout, ended
