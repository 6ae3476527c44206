"""What make gives the processes of the tests."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_python_keeps_what_it_compiles():
    """A hundred processes would compile the package anew, and two workers every test."""
    given = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    text = f"include {ROOT}/Makefile\nshown:\n\t@env\n"
    done = subprocess.run(["make", "-s", "-f", "-", "shown"], input=text, env=given, capture_output=True, text=True)
    assert "AMENT_PREFIX_PATH=" in done.stdout and "PYTHONDONTWRITEBYTECODE" not in done.stdout, done.stderr
