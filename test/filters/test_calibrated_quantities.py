"""Every calibrated quantity reaches the observers: docs/calibration.md has a table of which; each cell is tried."""

import itertools
import re

import numpy as np
import pytest
import yaml
from documentation import ROOT
from recordings import press_recording

from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import ActuatorSettings
from contact_estimation.robot.friction import FrictionSettings
from contact_estimation.settings import find_config, reference, replace

OBSERVERS = ("contact_imm", "momentum_calibrated", "disturbance")
SENSORS = SensorSettings(motor_side_velocity=True)
#: Keys that only structure, a shock or a long run shows; test_run_time_inputs and test_preintegration try them.
NOT_TRIED = {"elastic", "friction", "max_noise_ratio", "friction_bound", "contact_friction_bound", "steady_push_rate"}
STD = [name for name in FrictionSettings.__dataclass_fields__ if name.endswith("_std")]


def table():
    """Key -> observer -> whether the documents say that its output changes."""
    text = (ROOT / "docs" / "calibration.md").read_text()
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    head = next(row for row in rows if "contact_imm" in row[1] and "disturbance" in "".join(row))
    found = {}
    for row in itertools.takewhile(lambda row: len(row) == len(head), rows[rows.index(head) + 1 :]):
        keys = re.findall(r"`(\w+)`", row[0])
        for key in [*keys, *(STD if "their `_std`" in row[0] else [])]:
            if "robot.yaml" in row[0] or key == "_std":
                continue
            found[key] = {name: not row[1 + k].strip().startswith("no") for k, name in enumerate(OBSERVERS)}
    return found


TABLE = table()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def output(arm, tmp_path_factory):
    """What an observer says of a short press under noise, by its name and a change of the actuators."""
    folder, rng = tmp_path_factory.mktemp("actuators"), np.random.default_rng(0)
    pressed = press_recording(arm, seconds=0.25, stiffness=20e3)
    q = pressed.q + 3e-5 * rng.standard_normal(pressed.q.shape)
    tau = pressed.tau + 0.5 * rng.standard_normal(q.shape)
    shipped = yaml.safe_load(find_config("actuators", "ur16e").read_text())

    def run(name, key=None):
        mapping = {**shipped, "friction": dict(shipped["friction"])}
        if key is not None:
            at = mapping["friction"] if key in mapping["friction"] else mapping
            old = at.get(key, getattr(ActuatorSettings, key, None))
            defaults = {path: field.default for path, field in reference(ActuatorSettings)}
            old = defaults[key] if old is None or not isinstance(old, (int, float, list)) else old
            change = {"presliding_std": 5e-5, "deadband": 5e-5, "least_noise_share": -0.7}.get(key, 0.3)
            at[key] = [v + change for v in old] if isinstance(old, list) else old + change
        path = folder / f"{key}.yaml"
        path.write_text(yaml.safe_dump(mapping))
        settings = replace(load_observer_settings(name), "test", actuators=str(path))
        observer = make_observer(arm, settings, sensors=SENSORS)
        observer.reset(0.0, q[0])
        for row in zip(q[1:], pressed.dq[1:], tau[1:]):
            observer.step(0.002, *row)
        e = observer.estimate()
        return np.concatenate([e.tau_ext, e.force_base, e.force_covariance.ravel(), list(e.modes.values())])

    return run


@pytest.fixture(scope="module")
def usual(output):
    return {name: output(name) for name in OBSERVERS}


def test_the_table_has_every_key():
    names = {*ActuatorSettings.__dataclass_fields__, *FrictionSettings.__dataclass_fields__} - {"friction"}
    assert names == set(TABLE)


#: The IMM filter takes half a second to make: only what once did not reach it.
IMM_KEYS = {
    "viscous",
    "asymmetry",
    "torque_scale",
    "presliding_std",
    "viscous_std",
    "torque_scale_std",
    "friction_error",
    "least_noise_share",
}
TRIED = [(name, key) for name in OBSERVERS for key in sorted(set(TABLE) - NOT_TRIED)]


@pytest.mark.parametrize(("observer", "key"), [(o, k) for o, k in TRIED if o != "contact_imm" or k in IMM_KEYS])
def test_a_changed_key_changes_what_the_table_says(output, usual, observer, key):
    assert (output(observer, key) != usual[observer]).any() == TABLE[key][observer]
