"""What is published of a bank: force, external torque and contact parameters of every filter, and their mixture."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation.filters.bank.contact_law import ContactForces
from contact_estimation.filters.bank.layout import CONTACT_SIZE, BankLayout
from contact_estimation.filters.kalman import packed_size, unpack
from contact_estimation.robot import Arm

#: A filter believed less than this is not asked.
NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class ContactRows:
    """Where one contact is in the output vector: parameters [K n (3); x_rest (3); p_tcp (3)], their covariance (9, 9),
    the point in the base frame (3,), and per estimated entry the share of its prior standard deviation that is left."""

    values: slice
    spread: slice
    point: slice
    remaining: slice


class OutputLayout:
    """Where everything is in the output vector of ``n`` joints: ``tcp`` force and torque about the TCP in TCP axes
    (6,), ``base`` force (3,), ``torque`` of the joints (n,), ``covariance`` of the force (3, 3), ``contacts``; ``size``
    entries in all."""

    def __init__(self, layout: BankLayout):
        self.size = 0
        self.tcp, self.base, self.torque, self.covariance = (self._take(k) for k in (6, 3, layout.n, 9))
        self.contacts = [ContactRows(*(self._take(k) for k in (9, 81, 3, len(slots)))) for slots in layout.estimated]

    def _take(self, count: int) -> slice:
        self.size += count
        return slice(self.size - count, self.size)

    def mix(self, table: np.ndarray, beliefs: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """Moment-matched mixture (size,) of the rows ``table`` (R, size) with ``beliefs`` (R,). A contact's parameters
        are averaged over the filters that have it closed (``closed`` (R, I)); where none has, over all."""
        beliefs = beliefs / beliefs.sum()
        row = beliefs @ table
        self._add_spread(row, table, beliefs, slice(0, 3), self.covariance)
        for i, where in enumerate(self.contacts):
            share = beliefs * (closed[:, i] + 1e-9)
            share /= share.sum()
            row[where.values.start : where.remaining.stop] = share @ table[:, where.values.start : where.remaining.stop]
            self._add_spread(row, table, share, where.values, where.spread)
        return row

    @staticmethod
    def _add_spread(row, table, share, mean, covariance):
        difference = table[:, mean] - row[mean]
        row[covariance] += ((difference.T * share) @ difference).ravel()


def build_output(arm: Arm, layout: BankLayout) -> ca.Function:
    """Quantities of one filter at a configuration.

    Inputs: x, P (packed), q, closed, theta, basis. Output: one vector laid out by :class:`OutputLayout`.
    """
    size, count = layout.size, len(layout.contact)
    x, packed, q = ca.SX.sym("x", size), ca.SX.sym("P", packed_size(size)), ca.SX.sym("q", arm.n)
    closed, theta, basis = (
        ca.SX.sym("closed", count),
        ca.SX.sym("theta", CONTACT_SIZE * count),
        ca.SX.sym("basis", 9 * count),
    )
    covariance = unpack(packed, size)
    kin = arm.kinematics(q)
    contacts = ContactForces(arm, layout, kin, x, theta, basis, unilateral=True)
    rotation, _ = arm.tcp(kin)
    force, torque = contacts.wrench_base(closed)
    gradient = ca.jacobian(rotation.T @ force, x)
    parts = [
        rotation.T @ force,
        rotation.T @ torque,
        force,
        contacts.joint_torque(closed),
        ca.vec(gradient @ covariance @ gradient.T),
    ]
    for p, normal, point, rest, where in zip(
        contacts.parameters, contacts.normals, contacts.points, contacts.rests, layout.contact
    ):
        values = ca.vertcat(normal * ca.exp(p[0]), rest, p[4:7])
        slope = ca.jacobian(values, x)
        left = [ca.sqrt(covariance[k, k] / layout.variance[k]) for k in range(where.start, where.stop)]
        parts += [values, ca.vec(slope @ covariance @ slope.T), point, *left]
    return ca.Function(
        "bank_output",
        [x, packed, q, closed, theta, basis],
        [ca.densify(ca.vertcat(*parts))],
        ["x", "P", "q", "closed", "theta", "basis"],
        ["row"],
    )
