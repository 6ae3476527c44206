"""Parameters: optimiser's numbers and back, every kind is written into the model, bad bounds are refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from batch_scenes import BALL

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.inertia import identified_inertia
from contact_estimation.identify.batch.modifiers import KINDS, modifier
from contact_estimation.identify.batch.parameters import ParameterVector, PhysicalParameter
from contact_estimation.identify.batch.scene import Scene

TARGET = {
    "contact": "ball_on_floor",
    "spring": "turn",
    "joint": "turn",
    "anchor": "wrist",
    "body": "arm",
    "mass": "ball",
    "geom": "shell",
    "com": "ball",
    "inertia": "ball",
    "armature": "turn",
}
READ = {
    "contact_stiffness": lambda m: m.pair_solref[0, 0] / _factor(m),
    "contact_damping": lambda m: m.pair_solref[0, 1] / _factor(m),
    "contact_friction": lambda m: m.pair_friction[0, 1],
    "spring_stiffness": lambda m: m.jnt_stiffness[0],
    "spring_damping": lambda m: m.dof_damping[0],
    "anchor": lambda m: m.site("wrist").pos[1],
    "body_offset": lambda m: m.body("arm").pos[1],
    "geom_offset": lambda m: m.geom("shell").pos[1],
    "mass": lambda m: m.body("ball").mass[0],
    "joint_friction": lambda m: m.dof_frictionloss[0],
    "joint_damping": lambda m: m.dof_damping[0],
    "com_offset": lambda m: m.body("ball").ipos[1],
    "armature": lambda m: m.dof_armature[0],
}


def _factor(model):
    return -(1 - 1e-3) * model.body("ball").invweight0[0]


def _cube(nominal, kind):
    """A scene whose free cube has its inertia from a geom, with one parameter of ``kind``."""
    spec = mujoco.MjSpec.from_string(
        '<mujoco><worldbody><body name="cube"><freejoint/><geom type="box" size="0.1 0.2 0.3" mass="2"/></body>'
        "</worldbody></mujoco>"
    )
    return Scene(spec, [PhysicalParameter("x", nominal, -2.0, 3.0, modifier(kind, ["cube"]))])


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"inertia"}))
def test_every_kind_is_written_into_the_model(kind):
    vector = kind in ("anchor", "body_offset", "geom_offset", "com_offset")
    nominal = np.array([0.0, 0.02, 0.0]) if vector else 0.7
    parameter = PhysicalParameter(
        "x", nominal, -1.0 if vector else 0.1, 2.0, modifier(kind, [TARGET[kind.split("_")[0]]])
    )
    scene = Scene(mujoco.MjSpec.from_string(BALL), [parameter])
    for p in (scene.parameters.nominal, scene.parameters.nominal * 1.5):
        assert READ[kind](scene.build(p)) == pytest.approx(scene.parameters.values(p)[1 if vector else 0])


def test_mass_scales_the_inertia():
    parameter = PhysicalParameter("m", 1.0, 0.1, 2.0, modifier("mass", ["ball"]), log=True)
    model = Scene(mujoco.MjSpec.from_string(BALL), [parameter]).nominal
    assert sorted(model.body("ball").inertia) == pytest.approx([1.6e-3, 2e-3, 2.4e-3])


def test_any_log_cholesky_vector_is_a_body_that_can_exist_and_zero_is_the_descriptions():
    scene = _cube(np.zeros(6), "inertia")
    here = scene.nominal.body("cube").inertia
    assert sorted(here) == pytest.approx(sorted(2.0 / 3.0 * np.array([0.13, 0.1, 0.05])))
    for vector in np.random.default_rng(0).uniform(-1.0, 1.0, (5, 6)):
        moments = scene.build(scene.parameters.vector({"x": vector})).body("cube").inertia
        assert 2.0 * max(moments) < sum(moments)
    doubled = scene.build(scene.parameters.vector({"x": [0.5 * np.log(2.0)] * 3 + [0.0] * 3}))
    assert doubled.body("cube").inertia == pytest.approx(2.0 * here)


def test_a_mass_from_geoms_is_identified_and_a_com_offset_of_zero_has_a_derivative():
    assert _cube(1.0, "mass").nominal.body("cube").mass[0] == pytest.approx(1.0)
    scene = _cube(np.zeros(3), "com_offset")
    data = [mujoco.MjData(scene.build(p)) for p in (np.zeros(3), np.array([0.0, 4e-8, 0.0]))]
    for each in data:
        mujoco.mj_forward(each.model, each)
    assert data[1].xipos[1, 1] - data[0].xipos[1, 1] == pytest.approx(1e-7, rel=1e-6)


def test_inertia_is_reported_in_si_with_its_std():
    scene = _cube(np.zeros(6), "inertia")
    found = identified_inertia(scene, np.zeros(6), 0.01**2 * np.eye(6))
    assert [each.body for each in found] == ["cube"] and found[0].mass == pytest.approx(2.0)
    assert found[0].inertia == pytest.approx([2.6 / 30.0, 2.0 / 30.0, 1.0 / 30.0, 0.0, 0.0, 0.0], abs=1e-9)
    assert found[0].std[:4] == pytest.approx(0.0, abs=1e-9) and np.all(found[0].std[4:] > 1e-5)


def test_values_and_vector_are_inverse_and_std_scales():
    parameters = ParameterVector(
        [
            PhysicalParameter("k", 100.0, 10.0, 1000.0, None, log=True, prior_std=0.5),
            PhysicalParameter("x", [0.0, 0.1], -0.2, 0.2, None),
        ]
    )
    p = parameters.vector({"k": 50.0, "x": np.array([0.05, -0.1])})
    assert parameters.values(p) == pytest.approx([50.0, 0.05, -0.1])
    assert parameters.std(p, np.array([0.1, 0.1, 0.1])) == pytest.approx([5.0, 0.02, 0.02])
    assert parameters.names == ["k", "x[0]", "x[1]"]
    assert parameters.prior_std.tolist() == [0.5, np.inf, np.inf]
    sample = parameters.sample(np.random.default_rng(0))
    assert np.all(sample >= parameters.lower) and np.all(sample <= parameters.upper)


@pytest.mark.parametrize("arguments, text", [((5.0, 0.0, 1.0), "inside"), ((0.5, 0.5, 0.5), "inside")])
def test_bounds_must_enclose_the_nominal_value(arguments, text):
    with pytest.raises(IdentificationError, match=text):
        PhysicalParameter("x", *arguments, None)


def test_other_bad_input_is_refused():
    with pytest.raises(IdentificationError, match="lower bound"):
        PhysicalParameter("x", 0.5, 0.0, 1.0, None, log=True)
    with pytest.raises(IdentificationError, match="contact_stiffness"):
        modifier("stiffnes", ["a"])
    with pytest.raises(
        IdentificationError, match=r"'x' of kind 'mass', key 'targets': .* no body 'bal' \(nearest: 'ball'\)"
    ):
        Scene(mujoco.MjSpec.from_string(BALL), [PhysicalParameter("x", 0.5, 0.1, 1.0, modifier("mass", ["bal"]))])
    with pytest.raises(IdentificationError, match="needs 6 numbers in 'nominal', given 1"):
        _cube(0.0, "inertia")
    vector = ParameterVector([PhysicalParameter("x", 0.5, 0.1, 1.0, None)])
    with pytest.raises(IdentificationError, match="unknown"):
        vector.vector({"y": 1.0})
    with pytest.raises(IdentificationError, match="outside its bounds"):
        vector.vector({"x": 7.0})
    with pytest.raises(IdentificationError, match="must differ"):
        ParameterVector([PhysicalParameter("x", 0.5, 0.1, 1.0, None)] * 2)
