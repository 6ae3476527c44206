"""Symbolic kinematics and dynamics against Pinocchio."""

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.exceptions import ModelError
from contact_estimation.robot.rigid_body import RigidBody

#: The project's bar; both are exact up to rounding and the snapping of the description's noise.
CLOSE = {"rtol": 0, "atol": 1e-10}


def states(arm, count=20, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.uniform(arm.lower, arm.upper), rng.normal(size=arm.n), rng.normal(size=arm.n)) for _ in range(count)]


@pytest.fixture(scope="module")
def symbolic(arm):
    q, dq, ddq = (ca.SX.sym(name, arm.n) for name in ("q", "dq", "ddq"))
    body, kin = arm.body, arm.kinematics(q)
    rotation, position = arm.tcp(kin)
    outputs = {
        "tau": body.rnea(kin, dq, ddq),
        "M": body.crba(kin),
        "G": body.gravity_torque(kin),
        "p": position,
        "R": rotation,
        "J": kin.jacobian(arm.tcp_frame),
        "without": body.rnea(kin, dq, ddq, gravity=False),
    }
    function = ca.Function("all", [q, dq, ddq], list(outputs.values()), ["q", "dq", "ddq"], list(outputs))
    return lambda *state: {k: v.full().squeeze() for k, v in function(q=state[0], dq=state[1], ddq=state[2]).items()}


def test_dynamics_equal_pinocchio(arm, symbolic):
    data = arm.model.createData()
    for q, dq, ddq in states(arm):
        ours = symbolic(q, dq, ddq)
        np.testing.assert_allclose(ours["tau"], pin.rnea(arm.model, data, q, dq, ddq), **CLOSE)
        np.testing.assert_allclose(ours["G"], pin.computeGeneralizedGravity(arm.model, data, q), **CLOSE)
        upper = np.triu(pin.crba(arm.model, data, q))
        np.testing.assert_allclose(ours["M"], upper + np.triu(upper, 1).T, **CLOSE)
        np.testing.assert_allclose(ours["tau"] - ours["G"], ours["without"], **CLOSE)


def test_kinematics_equal_pinocchio(arm, symbolic):
    data = arm.model.createData()
    base, tcp = arm.model.getFrameId(arm.base_frame), arm.model.getFrameId(arm.tcp_frame)
    for q, dq, ddq in states(arm):
        ours = symbolic(q, dq, ddq)
        pin.framesForwardKinematics(arm.model, data, q)
        placement = data.oMf[base].inverse() * data.oMf[tcp]
        np.testing.assert_allclose(ours["p"], placement.translation, **CLOSE)
        np.testing.assert_allclose(ours["R"], placement.rotation, **CLOSE)
        jacobian = pin.computeFrameJacobian(arm.model, data, q, tcp, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        turn = data.oMf[base].rotation.T
        np.testing.assert_allclose(ours["J"], np.vstack([turn @ jacobian[:3], turn @ jacobian[3:]]), **CLOSE)


def test_the_jacobian_of_a_point_is_its_derivative(arm):
    offset, h = np.array([0.03, -0.05, 0.11]), 1e-6
    q = ca.SX.sym("q", arm.n)
    kin = arm.kinematics(q)
    rotation, position = arm.tcp(kin)
    point = position + rotation @ offset
    function = ca.Function("point", [q], [point, kin.point_jacobian(arm.tcp_frame, point)])
    at = states(arm, 1)[0][0]
    steps = np.eye(arm.n) * h
    numeric = np.column_stack([(function(at + s)[0] - function(at - s)[0]).full().ravel() / (2 * h) for s in steps])
    np.testing.assert_allclose(function(at)[1].full(), numeric, atol=1e-8)


def test_a_frame_on_an_inner_link_does_not_feel_the_joints_behind_it(arm):
    q = ca.SX.sym("q", arm.n)
    inner = next(f.name for f in arm.model.frames if f.parentJoint == 3 and f.type == pin.FrameType.BODY)
    jacobian = ca.Function("J", [q], [arm.kinematics(q).jacobian(inner)])(states(arm, 1)[0][0]).full()
    assert not jacobian[:, 3:].any() and jacobian[:, :3].any()


def prismatic_model():
    """Three joints, two of them prismatic, one of these along a slanted axis."""
    model = pin.Model()
    rng = np.random.default_rng(3)
    parent = 0
    axis = np.array([1.0, 2.0, -1.0]) / np.sqrt(6)
    for k, joint in enumerate(
        (pin.JointModelPZ(), pin.JointModelRevoluteUnaligned(axis), pin.JointModelPrismaticUnaligned(axis))
    ):
        placement = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
        parent = model.addJoint(parent, joint, placement, f"joint{k}")
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
        model.addFrame(pin.Frame(f"link{k}", parent, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    model.addFrame(pin.Frame("base", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    return model


def test_prismatic_and_slanted_joints_equal_pinocchio_too():
    model = prismatic_model()
    data, body = model.createData(), RigidBody(model, "base")
    q, dq, ddq = (ca.SX.sym(name, 3) for name in ("q", "dq", "ddq"))
    kin = body.kinematics(q)
    function = ca.Function("f", [q, dq, ddq], [body.rnea(kin, dq, ddq), body.crba(kin), kin.jacobian("link2")])
    rng = np.random.default_rng(4)
    for _ in range(10):
        state = rng.normal(size=(3, 3))
        tau, mass, jacobian = (v.full() for v in function(*state))
        np.testing.assert_allclose(tau.ravel(), pin.rnea(model, data, *state), **CLOSE)
        upper = np.triu(pin.crba(model, data, state[0]))
        np.testing.assert_allclose(mass, upper + np.triu(upper, 1).T, **CLOSE)
        frame = model.getFrameId("link2")
        np.testing.assert_allclose(
            jacobian,
            pin.computeFrameJacobian(model, data, state[0], frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED),
            **CLOSE,
        )


def test_a_branching_model_is_refused():
    model = pin.Model()
    for k in range(2):
        model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), f"joint{k}")
    model.addFrame(pin.Frame("base", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    with pytest.raises(ModelError, match=r"one serial chain"):
        RigidBody(model, "base")


def test_a_ball_joint_is_refused():
    model = pin.Model()
    model.addJoint(0, pin.JointModelRUBX(), pin.SE3.Identity(), "endless")
    model.addFrame(pin.Frame("base", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    with pytest.raises(ModelError, match=r"'endless'.*only revolute and prismatic"):
        RigidBody(model, "base")


def test_an_unknown_frame_is_named(arm):
    with pytest.raises(ModelError, match=r"no frame 'nowhere'"):
        arm.body.frame_offset("nowhere")
