"""The examples run as they are written, and show what they claim."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(name) -> str:
    done = subprocess.run([sys.executable, str(ROOT / "examples" / name)], capture_output=True, text=True, timeout=120,
                          cwd=ROOT,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_estimate_from_arrays_ends_near_the_truth():
    last = run("estimate_from_arrays.py").splitlines()[-1]
    force, truth = (float(v) for v in re.search(r"force\s+(\S+) .*\(truth\s+(\S+)\)  stiffness", last).groups())
    stiffness = float(re.search(r"stiffness\s+(\S+) kN/m", last)[1])
    assert force == pytest.approx(truth, abs=6.0) and stiffness == pytest.approx(25.0, rel=0.1)


def test_own_contact_beats_the_spring_where_nothing_is_touched():
    free = dict(re.findall(r"(\w+)\s+force error free\s+(\S+) N", run("own_contact.py")))
    assert float(free["surface"]) < 0.5 < 2.0 < float(free["spring"])
