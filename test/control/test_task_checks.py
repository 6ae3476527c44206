"""A task file with a slip of unit, axis or name is refused before anything moves, and says what was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import contact_estimation.control.path as path
from contact_estimation.control.mpc.settings import load_mpc_settings
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import replace

TASKS = sorted(Path(__file__).parents[2].glob("config/robots/*/tasks/mpc_*.yaml"))

SHARED = {"velocity": 20.0, "position": [100.0, 100.0, 0.0]}

CONTACT = {"name": "contact_1", "stiffness": [0.0, 0.0, 1000.0], "rest": "start"}

SLIPS = {
    "path in millimetres": ({"path": [100.0, 0.0, 0.0]}, r"path: \[100, 0, 0\] m is 100 m long.*0.3 m"),
    "too little time": ({"path_time": 0.1}, r"path_time: 0.1 m in 0.1 s need up to 1.9 m/s.*0.4 m/s.*at least 0.47 s"),
    "no weight on the force": ({"weights": {**SHARED, "force": [0.0, 0.0, 0.0]}}, "force: 10 N are wanted along z"),
    "the weight on another axis": (
        {"weights": {**SHARED, "force": [0.05, 0.0, 0.0]}},
        "force: 10 N are wanted along z",
    ),
    "a path without a weight": ({"path": [0.0, 0.0, -0.1]}, "path: -0.1 m lead along z"),
    "a mode of another name": (
        {"modes": {"free": [], "kontact": ["contact_1"]}},
        "'kontact' closes contact_1, which observers call 'contact_1'",
    ),
    "a turn in degrees": ({"turn": [0.0, 0.0, 30.0]}, r"turn: \[0, 0, 30\] rad is 30 rad long.*give it in rad"),
    "a contact twice": ({"contacts": [CONTACT, CONTACT]}, "contacts: 'contact_1' is there twice"),
    "no spring for an attitude": (
        {"orientation": True, "impedance": {"stiffness": [700.0] * 3, "rotational_stiffness": [40.0, 40.0, 0.0]}},
        r"orientation: true needs a spring about every axis.*\[40, 40, 0\] Nm/rad",
    ),
    "free space of another name": ({"modes": {"fre": [], "contact_1": ["contact_1"]}}, "'fre' closes no contact"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused(slip):
    changes, words = SLIPS[slip]
    with pytest.raises(ConfigError, match=words):
        replace(load_mpc_settings("mpc_plane_fr3"), "test", **changes)


def test_modes_are_combinations_of_contacts_in_any_order():
    both = ["contact_1", "contact_2"]
    modes = {"free": [], "unknown": [], "contact_1": ["contact_1"], "contact_2+contact_1": both}
    made = replace(load_mpc_settings("mpc_pivot_fr3"), "test", modes=modes)
    assert made.closed_contacts()["contact_2+contact_1"] == [0, 1]


@pytest.mark.parametrize("task", TASKS, ids=lambda file: file.stem)
def test_shipped_tasks_pass(task):
    load_mpc_settings(str(task))


def test_the_fastest_point_of_the_path_is_in_its_middle():
    step = 1e-4
    middle = float(path.path_share(0.5 + step) - path.path_share(0.5 - step)) / (2.0 * step)
    assert middle == pytest.approx(path.PEAK_SPEED, rel=1e-6)
