"""A value that changes compiles nothing; only structure does."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.codegen import compiler
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import ActuatorSettings, load_actuators
from contact_estimation.settings import from_mapping, reference, to_mapping

#: Numbers that are structure: which joints bend, how many filters there are.
STRUCTURE = {"elastic.joints", "hypotheses", "unknown.filters"}
SENSORS = SensorSettings(motor_side_velocity=True)


def numeric(cls):
    """Dotted paths of all numeric keys of a settings class, lists of settings by their first entry."""
    words = ("float", "int", "list[float]", "float | str", "int | None")
    keys = [(path.replace("[]", ".0"), field) for path, field in reference(cls)]
    return [path for path, field in keys if str(field.type) in words and path not in STRUCTURE]


def base():
    estimated, spread = ["stiffness", "rest", "normal"], [0.02, 0.02, 0.01]
    contact = ImmContact(normal=[0.0, 0.1, 1.0], point_std=spread, friction_std=0.2, estimate=estimated)
    return ImmSettings(contacts=[contact], modes=[[], ["contact_1"]])


def changed(settings, paths):
    """A copy of ``settings`` with the numbers at ``paths`` a little larger."""
    mapping = to_mapping(settings)
    for path in paths:
        change(mapping, path)
    return from_mapping(type(settings), mapping, "test")


def change(mapping, path):
    *parents, last = path.split(".")
    at = mapping
    for name in parents:
        at = at[int(name)] if name.isdigit() else at[name]
    before, scale = at[last], 1.01
    old = 0.3 if before == "touch" else before
    at[last] = [v * scale + (v == 0) * 1e-3 for v in old] if isinstance(old, list) else old * scale + (old == 0) * 1e-3
    if last == "point_std":
        at[last] = [0.021, 0.022, 0.0] if old[2] == 0 else [0.021, 0.022, 0.011]
    assert at[last] != before, path


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def build(arm, tmp_path_factory):
    """Makes an observer of settings and actuators; everything is compiled once before."""
    from contact_estimation.filters.imm import observer

    def make(settings, actuators):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(observer, "actuators_of", lambda arm, choice: actuators)
            return ContactImm(arm, settings, sensors=SENSORS)

    make(base(), load_actuators("ur16e"))
    return make


@pytest.fixture
def nothing_compiles(monkeypatch):
    def refuse(_compiler, _source, target, _flags):
        raise AssertionError(f"compiled {target.name}")

    monkeypatch.setattr(compiler, "compile_shared", refuse)


def culprits(make, paths):
    """Which of ``paths`` compile something when changed: all are changed at once, and one by one if that compiles."""
    try:
        assert make(paths).backend == "c"
        return []
    except AssertionError:
        found = []
        for path in paths:
            try:
                make([path])
            except AssertionError as error:
                found.append(f"{path}: {error}")
        return found or ["together"]


def test_a_changed_value_of_the_filter_compiles_nothing(build, nothing_compiles):
    make = lambda paths: build(changed(base(), paths), load_actuators("ur16e"))  # noqa: E731
    assert not culprits(make, numeric(ImmSettings))


def test_a_changed_value_of_the_actuators_compiles_nothing(build, nothing_compiles):
    actuators = dataclasses.replace(load_actuators("ur16e"), least_noise_share=0.5)  # of a share of one none is larger
    make = lambda paths: build(base(), changed(actuators, paths))  # noqa: E731
    assert not culprits(make, numeric(ActuatorSettings))


def test_every_kind_of_number_is_tried():
    """The keys that were constants of the code are among them."""
    paths = {*numeric(ImmSettings), *numeric(ActuatorSettings)}
    assert {"close_rate", "block", "contacts.0.stiffness", "unknown.link_share"} <= paths
    assert {"torque_noise", "model_error", "velocity_noise", "elastic.stiffness", "elastic.velocity_delay"} <= paths


def test_structure_does_compile(build, nothing_compiles):
    actuators = load_actuators("ur16e")
    elastic = dataclasses.replace(actuators.elastic, joints=[1], stiffness=[3.9e4])
    with pytest.raises(AssertionError, match="compiled ce_imm_"):
        build(base(), dataclasses.replace(actuators, elastic=elastic))


def test_a_value_reaches_the_estimate(build, arm):
    """An input that nothing reads would compile nothing either: a noisier torque moves the filters less."""
    rows = np.random.default_rng(0).normal(0.0, 3.0, (200, arm.n))
    q, found = 0.6 * arm.lower + 0.4 * arm.upper, []
    actuators = load_actuators("ur16e")
    for scale in (1.0, 30.0):
        noise = [scale * v for v in actuators.torque_noise]
        observer = build(base(), dataclasses.replace(actuators, torque_noise=noise))
        observer.reset(0.0, q)
        for row in rows:
            observer.step(0.002, q, np.zeros(arm.n), arm.gravity(q) + 20.0 + row)
        found.append(np.abs(observer.filters.x[0][observer.layout.parts["bias"]]).max())
    assert found[1] < 0.5 * found[0]
