"""The arm as a MuJoCo model, built by MjSpec from the numbers of :class:`~contact_estimation.robot.Arm`.

Bodies, joints and inertias are taken from the arm's Pinocchio model and not from a second reading of the URDF, so that
M and gravity agree to rounding, tool and locked joints included. Reflected rotor inertia is MuJoCo's armature.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin

from contact_estimation.robot import Arm

#: Site at the TCP, with its axes.
TCP_SITE = "tcp"


def build_spec(arm: Arm, timestep: float, rotor_inertia: bool = True) -> mujoco.MjSpec:
    """Build the MjSpec of ``arm``.

    Its base frame is the world, joint i moves the body named after it, the TCP is the site ``tcp``.

    Args:
        arm: the arm.
        timestep: integration step [s].
        rotor_inertia: with the reflected rotor inertia on the joints; without it the bodies are the bare links.
    """
    spec = mujoco.MjSpec()
    spec.modelname = arm.name
    spec.compiler.degree = False
    spec.compiler.autolimits = False
    # Identified inertias may violate A + B >= C by what they are uncertain (the Panda's): those links get their mean.
    spec.compiler.balanceinertia = True
    # Without it MuJoCo goes back to time zero when the motion diverges, and the simulation never ends.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = arm.model
    base = arm.frame(arm.base_frame).placement
    spec.option.gravity = base.rotation.T @ model.gravity.linear
    bodies = [spec.worldbody]
    for j in range(1, model.njoints):
        placement = model.jointPlacements[j] if model.parents[j] else base.actInv(model.jointPlacements[j])
        body = bodies[model.parents[j]].add_body(
            name=model.names[j], pos=placement.translation, quat=_quaternion(placement.rotation)
        )
        inertia = model.inertias[j]
        body.explicitinertial = True
        body.mass, body.ipos = inertia.mass, inertia.lever
        moments, axes = np.linalg.eigh(inertia.inertia)
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        body.inertia, body.iquat = moments, _quaternion(axes)
        i = j - 1
        kind = mujoco.mjtJoint.mjJNT_SLIDE if arm.body.prismatic[i] else mujoco.mjtJoint.mjJNT_HINGE
        body.add_joint(
            name=model.names[j],
            type=kind,
            axis=arm.body.axes[i],
            armature=arm.motor.armature[i] if rotor_inertia else 0.0,
        )
        bodies.append(body)
    tcp = arm.frame(arm.tcp_frame)
    bodies[tcp.parentJoint].add_site(
        name=TCP_SITE, pos=tcp.placement.translation, quat=_quaternion(tcp.placement.rotation), rgba=(0, 0, 0, 0)
    )
    return spec


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    x, y, z, w = pin.Quaternion(np.asarray(rotation, float)).coeffs()
    return np.array([w, x, y, z])
