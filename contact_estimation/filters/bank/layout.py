"""Where everything is in the bank's state, and its statistics before anything was measured.

    x = [per contact: ln K, d, a1, a2, p (3), f (2), as far as estimated;  b (n); c (n); v (n);  o (m); ln k (m)]

ln K: stiffness; d: rest height along the normal [m]; a: tilt of the normal; p: contact point in the TCP frame [m]; f:
friction coefficients along the tangents or, of a point that sticks, its rest position along them [m]; b: torque bias,
c: Coulomb amplitude, v: slow deviation [Nm]; o: offset [rad] and k: stiffness [Nm/rad] of m elastic joints.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.bank.settings import BankContact, BankSettings, DriveSettings

#: Entries of one contact's parameter vector theta.
CONTACT_SIZE = 9
#: [rad] The deflection at the start is unknown: only its changes tell of forces.
OFFSET_STD = 3e-3
#: Their names in messages: tangents are columns 2 and 3 of the contact's basis.
SLOT_NAMES = ("stiffness", "rest", "tilt_1", "tilt_2", "point_x", "point_y", "point_z", "friction_1", "friction_2")
_STICKING_NAMES = (*SLOT_NAMES[:7], "rest_1", "rest_2")
#: Standard deviations that a friction coefficient and a joint's stiffness can be away from what they were said to be:
#: what needs more is another contact.
BOUND = 3.0
_SLOTS = {"stiffness": [0], "rest": [1], "normal": [2, 3], "point": [4, 5, 6], "tangential": [7, 8]}


class BankLayout:
    """Layout and prior of a bank for ``n`` joints; ``motor_side``: the measured velocity is the motors'.

    Attributes:
        size: N. n, m: joints and elastic joints. estimated: per contact the theta slots in the state.
        names: per contact the names of these.
        contact: per contact the slice of its entries. bias, coulomb, deviation, offset, elastic: slices.
        theta: (I, 9) parameters before anything was measured. basis: (I, 3, 3) columns normal, tangent 1, tangent 2 in
        base axes. mean, variance: (N,) prior. first_variance: the prior at the very first sample.
        wander: (N,) growth of the variance per second. time: (N,) correlation time [s], infinite for random walks.
    """

    def __init__(self, settings: BankSettings, drives: DriveSettings, n: int, motor_side: bool = False):
        self.motor_side = motor_side
        self.n, self.m, self.elastic_joints = n, len(drives.elastic.joints), list(drives.elastic.joints)
        self.theta = np.array([_theta(c) for c in settings.contacts])
        self.sticks = [c.sticks for c in settings.contacts]
        self.basis = np.array([_basis(np.asarray(c.normal, float)) for c in settings.contacts])
        mean, variance, first, wander, time = [], [], [], [], []

        def add(entries_mean, std, per_second=0.0, lasting=np.inf, first_std=None):
            start = len(mean)
            entries = np.broadcast_arrays(
                np.asarray(entries_mean, float), std, per_second, lasting, std if first_std is None else first_std
            )
            mean.extend(entries[0])
            variance.extend(entries[1] ** 2)
            wander.extend(entries[2] ** 2)
            time.extend(entries[3])
            first.extend(entries[4] ** 2)
            return slice(start, len(mean))

        self.estimated, self.contact = [], []
        for c, theta in zip(settings.contacts, self.theta):
            std, per_second, lasting, first_std = _contact_statistics(c)
            slots = [slot for kind in _SLOTS if kind in c.estimate for slot in _SLOTS[kind] if std[slot] > 0]
            self.estimated.append(slots)
            self.contact.append(add(theta[slots], std[slots], per_second[slots], lasting[slots], first_std[slots]))
        self.names = [
            tuple((_STICKING_NAMES if sticks else SLOT_NAMES)[slot] for slot in slots)
            for slots, sticks in zip(self.estimated, self.sticks)
        ]
        friction = drives.friction
        self.bias = add(friction.bias, np.array(friction.bias_std), np.array(drives.bias_drift))
        self.coulomb = add(friction.coulomb, np.array(friction.coulomb_std))
        self.deviation = add(np.zeros(n), np.array(drives.deviation_std), lasting=drives.deviation_time)
        self.offset = add(np.zeros(self.m), OFFSET_STD, drives.elastic.drift)
        self.elastic = add(np.log(drives.elastic.stiffness), drives.elastic.stiffness_spread)
        self.mean, self.variance, self.first_variance = np.array(mean), np.array(variance), np.array(first)
        self.wander, self.time = np.array(wander), np.array(time)
        self.size = len(mean)
        bounded = [
            where.start + k
            for i, (slots, where) in enumerate(zip(self.estimated, self.contact))
            for k, slot in enumerate(slots)
            if slot in (7, 8) and not self.sticks[i]
        ] + list(range(self.elastic.start, self.elastic.stop))
        self.bounded = [(k, float(mean[k]), BOUND * float(self.variance[k]) ** 0.5) for k in bounded]

    @property
    def constants(self) -> tuple[np.ndarray, np.ndarray]:
        """The inputs ``theta`` and ``basis`` (9 I,) of generated code: what is not estimated, axes column by column."""
        return self.theta.ravel(), np.concatenate([b.ravel(order="F") for b in self.basis])

    def decay_and_noise(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Diagonals (N,) of the transition and of the process noise over ``dt`` [s]: random walks, and exponentially
        forgetting entries whose variance stays what it is."""
        with np.errstate(divide="ignore"):
            decay = np.where(np.isinf(self.time), 1.0, np.exp(-dt / self.time))
        return decay, self.wander * dt + self.variance * (1 - decay**2)


def _theta(c: BankContact) -> np.ndarray:
    height = 0.0 if isinstance(c.rest, str) else c.rest
    return np.array([np.log(c.stiffness), height, 0.0, 0.0, *c.point, 0.0, 0.0])


def _contact_statistics(c: BankContact):
    std = np.array(
        [
            np.log(c.stiffness_factor),
            c.rest_std,
            c.normal_std,
            c.normal_std,
            *c.point_std,
            c.friction_std,
            c.friction_std,
        ]
    )
    wander = np.array([c.stiffness_wander, c.rest_wander, 0, 0, *[c.point_wander] * 3, 0, 0], float)
    lasting = np.array([np.inf] * 7 + [c.friction_time] * 2)
    first = std.copy()
    first[1] = c.rest_std_first
    if c.sticks:
        std[7:], first[7:], wander[7:], lasting[7:] = std[1], first[1], wander[1], np.inf
    return std, wander, lasting, first


def _basis(normal: np.ndarray) -> np.ndarray:
    """Right-handed orthonormal basis whose first column is the unit normal."""
    normal = normal / np.linalg.norm(normal)
    helper = np.eye(3)[int(np.argmin(np.abs(normal)))]
    first = np.cross(np.cross(normal, helper), normal)
    first /= np.linalg.norm(first)
    return np.column_stack([normal, first, np.cross(normal, first)])
