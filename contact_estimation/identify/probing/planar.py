"""The planar contact of paper 4: tip, surface, stiffness and friction, and the wrench they predict (eq. 3-7).

Parameters s = (x^p, y^p, phi, d, kappa~, mu~), eq. 12. The surface is the line n.p = d with tangent (cos phi, sin
phi) and outward normal n = (-sin phi, cos phi), from which eq. 3-7 follow as printed. Wrench (F_x, F_y, M_z) is what
the environment exerts ON the probe, in end-effector axes about the end-effector origin. As printed, eq. 3-5 carry no
clamp at zero deformation: the filter uses them in contact only, and without the kink they are nearly polynomial.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.bounded import Bounds

PARAMETERS = ("tip_x", "tip_y", "phi", "d", "stiffness", "friction")
UNITS = ("m", "m", "rad", "m", "N/m", "1")


def deformation(pose, tip, phi, d):
    """Deformation delta [m], eq. 6; every argument may be an array: ``pose`` and ``tip`` are sequences of rows."""
    theta = pose[2] - phi
    return np.sin(phi) * pose[0] - np.cos(phi) * pose[1] - np.sin(theta) * tip[0] - np.cos(theta) * tip[1] + d


def slip_velocity(pose, twist, tip, phi):
    """Tangential velocity v_t^p of the tip [m/s], eq. 7."""
    theta = pose[2] - phi
    return (np.cos(phi) * twist[0] + np.sin(phi) * twist[1]
            - (np.sin(theta) * tip[0] + np.cos(theta) * tip[1]) * twist[2])


def contact_wrench(theta, tip, normal_force, sign_friction):
    """(F_x, F_y, M_z), eq. 3-5, for theta = alpha - phi, kappa delta and sgn(v_t) mu."""
    c, s = np.cos(theta), np.sin(theta)
    force_x = normal_force * (s - sign_friction * c)
    force_y = normal_force * (c + sign_friction * s)
    return force_x, force_y, tip[0] * force_y - tip[1] * force_x


class PlanarModel:
    """Measurement model of the plane for :class:`~contact_estimation.identify.probing.filter.ProbingFilter`.

    Args:
        stiffness: bounds of kappa [N/m].
        friction: bounds of mu.
    """

    axes = 3
    wrench_size = 3
    force_size = 2
    contacts = 1
    trailing = ()  # in the plane friction has a sign alone, right once the presliding distance is over
    parameters = PARAMETERS
    units = UNITS
    #: sign of sliding in every mode, one tuple over the contacts per mode
    modes = ((1.0,), (-1.0,))

    def __init__(self, stiffness: Bounds, friction: Bounds):
        self.bounds = {4: stiffness, 5: friction}

    @staticmethod
    def advance(pose, increment):
        """Pose moved by ``increment`` (3,)."""
        return pose + increment

    @staticmethod
    def difference(pose, reference):
        """Increment (3,) from ``reference`` to ``pose``; the angle is wrapped."""
        step = pose - reference
        step[2] = (step[2] + np.pi) % (2.0 * np.pi) - np.pi
        return step

    @staticmethod
    def shift(pose, origin):
        """Pose with its position relative to ``origin`` (2,)."""
        return np.array([pose[0] - origin[0], pose[1] - origin[1], pose[2]])

    def prepare(self, pose, twist, s, deflection=None):
        """Rows (1, 6) over [pose; twist] errors through which kinematic noise enters the wrench: the deformation's.
        (Turning the force by the angle's noise of half a milliradian is far below the force noise.) Nothing else is
        prepared."""
        theta, phi = pose[2] - s[2], s[2]
        lever = -(np.cos(theta) * s[0] - np.sin(theta) * s[1])
        return np.array([[np.sin(phi), -np.cos(phi), lever, 0.0, 0.0, 0.0]]), None

    def wrenches(self, pose, twist, c, prepared, modes):
        """Predicted wrench (3, N) of each of ``modes`` at the points ``c`` (7, N): parameters, then the deformation's
        noise."""
        tip, theta = (c[0], c[1]), pose[2] - c[2]
        sin_phi, cos_phi, sin, cos = np.sin(c[2]), np.cos(c[2]), np.sin(theta), np.cos(theta)
        delta = sin_phi * pose[0] - cos_phi * pose[1] - sin * tip[0] - cos * tip[1] + c[3] + c[6]
        normal = self.bounds[4].to_bounded(c[4]) * delta
        friction = normal * self.bounds[5].to_bounded(c[5])
        normal_x, normal_y, friction_x, friction_y = normal * sin, normal * cos, friction * cos, friction * sin
        out = []
        for (sign,) in modes:
            wrench = np.empty((3, c.shape[1]))
            np.subtract(normal_x, sign * friction_x, out=wrench[0])
            np.add(normal_y, sign * friction_y, out=wrench[1])
            wrench[2] = tip[0] * wrench[1] - tip[1] * wrench[0]
            out.append(wrench)
        return out

    def slip(self, pose, twist, s):
        """Slip velocity (1,) of eq. 7, its gradient (1, 12) over [pose; twist; s], and the velocity as a vector (1,
        1)."""
        theta, phi = pose[2] - s[2], s[2]
        sin, cos, sin_phi, cos_phi = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
        arm = sin * s[0] + cos * s[1]
        turn = (cos * s[0] - sin * s[1]) * twist[2]
        value = np.array([cos_phi * twist[0] + sin_phi * twist[1] - arm * twist[2]])
        gradient = np.zeros((1, 12))
        gradient[0, 2] = -turn
        gradient[0, 3:6] = cos_phi, sin_phi, -arm
        gradient[0, 6:9] = -sin * twist[2], -cos * twist[2], -sin_phi * twist[0] + cos_phi * twist[1] + turn
        return value, gradient, value[:, None]

    @staticmethod
    def slip_samples(pose, twist, s, deviations):
        """Slip velocity (1, N), exactly, at ``deviations`` (12, N) of [pose; twist; s]."""
        s = s[:, None] + deviations[6:]
        return slip_velocity(pose[:, None] + deviations[:3], twist[:, None] + deviations[3:6], s[:2], s[2])[None]

    @staticmethod
    def offset_to_world(s, covariance, origin):
        """``s`` and ``covariance`` with the offset d referred to the world origin instead of ``origin`` (2,)."""
        normal = np.array([-np.sin(s[2]), np.cos(s[2])])
        out, jacobian = np.array(s), np.eye(6)
        out[3] += normal @ origin
        jacobian[3, 2] = -np.cos(s[2]) * origin[0] - np.sin(s[2]) * origin[1]
        return out, jacobian @ covariance @ jacobian.T

    @staticmethod
    def wrench_deviations(settings):
        """Standard deviations (3,) of the measured wrench."""
        return np.array([settings.force_noise, settings.force_noise, settings.torque_noise])

    @staticmethod
    def walk(settings):
        """Standard deviations (6,) of what the parameters may change per slide step."""
        return np.array([settings.tip_walk, settings.tip_walk, settings.angle_walk, settings.offset_walk,
                         settings.stiffness_walk, settings.friction_walk])

    def start(self, settings, pose, tip, phi):
        """Rough start from a first touch at ``pose``: the surface passes near the guessed ``tip`` (2,) with angle
        ``phi``.

        Returns:
            s (6,), covariance (6, 6) and origin (2,) for :meth:`ProbingFilter.start`. Since the tip touches, the
            offset is as uncertain as the tip along the normal, and correlated with it.
        """
        rotation = np.array([[np.cos(pose[2]), -np.sin(pose[2])], [np.sin(pose[2]), np.cos(pose[2])]])
        origin = np.asarray(pose[:2]) + rotation @ tip
        normal = np.array([-np.sin(phi), np.cos(phi)])
        stiffness = self.bounds[4].fit(settings.stiffness_start, settings.stiffness_start_std)
        friction = self.bounds[5].fit(settings.friction_start, settings.friction_start_std)
        s = np.array([tip[0], tip[1], phi, 0.0, stiffness[0], friction[0]])
        root = np.diag([settings.tip_start_std, settings.tip_start_std, settings.angle_start_std,
                        settings.offset_start_std, stiffness[1], friction[1]])
        root[3, :2] = settings.tip_start_std * (normal @ rotation)
        return s, root @ root.T, origin
