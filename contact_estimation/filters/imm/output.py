"""Output of the IMM filter: force, external torque and contact parameters of every filter, and their mixture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace

import casadi as ca
import numpy as np

from contact_estimation.codegen import CompiledFunction, Parts, named_function, symbols
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.filters.estimate_row import arm_parts
from contact_estimation.filters.imm.contact_law import ContactExpressions, ContactForces, contacts_at, pose_of
from contact_estimation.filters.imm.imm_step import ImmStep
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.signals import shapes
from contact_estimation.filters.imm.state import LEAST_DEFLECTION, StateLayout
from contact_estimation.filters.imm.unknown import ExternalTorque, push_response, tcp_wrench
from contact_estimation.filters.kalman import packed_places, unpack
from contact_estimation.filters.observer import CLOSED, ContactState
from contact_estimation.robot import Arm

#: A parameter with more than this share of its prior standard deviation left is weakly observed: half of the variance.
_WEAK = 0.5**0.5
#: Standard deviations by which the stiffness of an unknown contact is above zero where motion shows it.
_SHOWN = 2.0
#: Keeps the shares of filters that have a contact closed defined where none has.
_LEAST_SHARE = 1e-9
#: Keeps the direction of a force defined where there is none [N].
_LEAST_FORCE = 1e-6
#: Share of a variance that keeps a covariance regular where channels measure the same.
_ROUNDING = 1e-9


def wrench_parts(n: int) -> Parts:
    """Return the parts of an output vector that are of the arm.

    Force and torque about the TCP in TCP axes, force in base axes, torque of the joints, covariance of the force.
    """
    return Parts(force_tcp=3, torque_tcp=3, force_base=3, torque=n, force_covariance=9)


def contact_parts(layout: StateLayout) -> list[Parts]:
    """Return the parts of an output vector that are of each contact, after those of the arm.

    ``values``: [K n (3); x_rest (3); p_tcp (3)], ``covariance`` (9, 9) of these, ``point`` in the base frame (3,),
    ``law``: its own parameters, ``std_ratio``: posterior over prior standard deviation of every estimated entry.
    """
    sizes = [(len(c.law.parameters), len(c.names)) for c in layout.contacts]
    return [Parts(values=9, covariance=81, point=3, law=own, std_ratio=count) for own, count in sizes]


def build_output(arm: Arm, layout: StateLayout) -> ca.Function:
    """Return the function of one filter's output at a configuration.

    Inputs are :mod:`.signals`. Output: row: :func:`wrench_parts`, then :func:`contact_parts` of every contact.
    """
    names = "x P q_now closed theta basis slip_direction prior_variance felt wrench_variance friction_drift hysteresis"
    names += " depth_error tcp_pose presliding_mean push_regression unit_stiffness push_held push_share variance_factor"
    s = symbols(**shapes(layout, names))
    own, kinematics = unpack(s.P, layout.size), arm.kinematics(s.q_now)
    pose = rotation, _ = arm.tcp(kinematics)
    last = pose_of(s.tcp_pose)
    contacts = contacts_at(layout, pose, s.x, s.theta, s.basis, s.slip_direction, last, unilateral=True)
    forces = ContactForces(arm, kinematics, contacts)
    force, torque = forces.wrench_base(s.closed)
    joint_torque = known_torque = forces.joint_torque(s.closed)
    jacobian, measured = kinematics.jacobian(arm.tcp_frame), known_torque
    if layout.has_external:
        measured = known_torque + s.felt * s.x[layout.parts["external"]]
        external, slope = _moved_push(layout, s, jacobian[:3, :], pose[1] - last[1])
        joint_torque = known_torque + s.felt * external
    channels = layout.channels(s.x, measured, arm.body.gravity_torque(kinematics), s.presliding_mean)
    covariance = _observed_covariance(own, ca.jacobian(channels, s.x), s.variance_factor)
    gradient = ca.jacobian(rotation.T @ force, s.x)
    force_covariance = gradient @ covariance @ gradient.T
    if layout.m:
        compliance = ca.exp(-s.x[layout.parts["joint_stiffness"]])
        for i, contact in enumerate(forces.contacts):
            bends = forces.point_torque(contact, contact.normal)[layout.elastic_joints]
            error = _law_error(contact, ca.sumsqr(bends * ca.sqrt(compliance)), s.depth_error[i])
            force_covariance += s.closed[i] * (rotation.T @ (error @ error.T) @ rotation)
    if layout.has_external:
        uncertain = slope @ covariance @ slope.T + ca.diag(s.friction_drift)
        wrench, spread = tcp_wrench(jacobian, push := ca.SX.sym("push", arm.n), uncertain, s.wrench_variance)
        wrench, by_push = ca.substitute([wrench, ca.jacobian(wrench, push)], [push], [external])
        if layout.m:
            spread += _hysteresis_error(layout, s.x, covariance, by_push @ slope, external, s.hysteresis)
        force, torque = force + s.felt * wrench[:3], torque + s.felt * wrench[3:]
        force_covariance += s.felt * (rotation.T @ spread[:3, :3] @ rotation)
    row = [rotation.T @ force, rotation.T @ torque, force, joint_torque, ca.vec(force_covariance)]
    std_ratio = ca.sqrt(ca.diag(own) / s.prior_variance)
    for contact in forces.contacts:
        values = ca.vertcat(contact.normal * contact.closed.stiffness, contact.rest, contact.point_tcp)
        slope = ca.jacobian(values, s.x)
        row += [values, ca.vec(slope @ covariance @ slope.T), contact.point, contact.closed.parameters]
        row.append(std_ratio[contact.part.where])
    return named_function("imm_output", s, {"row": ca.vertcat(*row)})


def _moved_push(layout: StateLayout, s: SimpleNamespace, jacobian: ca.SX, way: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the torque (n,) [Nm] of an unknown contact where the arm is now, and its slope (n, N) by the state.

    Args:
        layout: parts of the filters' state.
        s: symbols of :func:`build_output`.
        jacobian: (3, n) of the TCP now, base axes.
        way: (3,) [m] of the TCP since the block.
    """
    external = s.x[layout.parts["external"]]
    stiffness = s.push_held * s.unit_stiffness * s.x[layout.parts["push_stiffness"]]
    external_now = external + push_response(jacobian, given := ca.SX.sym("force", 3), stiffness, s.push_share * way)
    moved = [external_now, ca.jacobian(external_now, s.x)]  # errors of the push's direction do not count
    torque, slope = ca.substitute(moved, [given], [s.push_regression @ external])
    return torque, slope


def _observed_covariance(covariance: ca.SX, rows: ca.SX, variance_factor: ca.SX) -> ca.SX:
    """Covariance (N, N) of the state, in which what the channels measure is as certain as their innovations show.

    The channels measure sums: torque and friction, offset and deflection. Innovations show how well these are known,
    P_y = H P H^T, and nothing about the terms. G = P H^T P_y^-1 is the regression of the state on these sums. The part
    G P_y G^T of the covariance takes the factors of the channels; the rest stays.

    Args:
        covariance: P (N, N) of the filter.
        rows: H (m + n, N) of the channels.
        variance_factor: (m + n,) of them.
    """
    cross = covariance @ rows.T  # (N, m + n)
    measured = ca.densify(rows @ cross)
    measured += _ROUNDING * ca.diag(ca.diag(measured))
    regression = LDL(measured).solve(cross.T)  # (m + n, N)
    scale = ca.sqrt(variance_factor)
    shown: ca.SX = covariance - regression.T @ (measured * (1 - scale @ scale.T)) @ regression
    return shown


def _law_error(contact: ContactExpressions, compliance: ca.SX, depth_error: ca.SX) -> ca.SX:
    """Error (3,) [N] of a contact's force, base axes, by a depth that is off its law.

    A surface and what holds it have hysteresis: over a press the depth is off the law by up to delta. It changes the
    force by K delta, less what the arm gives way: K delta / (1 + K c). The error is at most the force itself.

    Args:
        contact: at the configuration.
        compliance: c [m/N] of the arm's joints along the normal.
        depth_error: delta [m].
    """
    stiffness = contact.closed.stiffness
    size = stiffness * depth_error / (1 + stiffness * compliance)
    error: ca.SX = contact.force * size / ca.sqrt(ca.sumsqr(contact.force) + size**2 + _LEAST_FORCE**2)
    return error


def _hysteresis_error(
    layout: StateLayout, x: ca.SX, covariance: ca.SX, gradient: ca.SX, joint_torque: ca.SX, hysteresis: ca.SX
) -> ca.SX:
    """Covariance (k, k) of the wrench of an unknown contact by the hysteresis of the loaded gears.

    The deflections err together, in the direction in which the load deflects them. An error of the offsets moves the
    force by its regression on them in the filter's own covariance. It is considered (Schmidt, 1966), not estimated.

    Args:
        layout: parts of the filters' state.
        x: (N,) state.
        covariance: (N, N) of it.
        gradient: (k, N) of the wrench by the state.
        joint_torque: (n,) [Nm] of the unknown contact.
        hysteresis: [rad], half the width of the gears' loop: a load may be on either side of it.
    """
    deflection = joint_torque[layout.elastic_joints] * ca.exp(-x[layout.parts["joint_stiffness"]])  # (m,) [rad]
    width = 2 * hysteresis
    error = deflection * width / ca.sqrt(ca.sumsqr(deflection) + width**2 + LEAST_DEFLECTION**2)
    offset = layout.parts["offset"]
    moved = gradient @ covariance[:, offset] @ LDL(covariance[offset, offset]).solve(error)  # (k,)
    return moved @ moved.T


def output_functions(arm: Arm, layout: StateLayout, chain: ModeChain) -> list[ca.Function]:
    """Return the functions of the output of all filters."""
    return [build_output(arm, layout), build_mixture(layout, chain)]


def build_mixture(layout: StateLayout, chain: ModeChain) -> ca.Function:
    """Return the function of the row of an estimate: the mixture of all filters that are not negligible.

    Inputs: table (R, M), the output of :func:`build_output` of every filter; probabilities (M,);
    published_probability, below which a filter is negligible; nis; q_now, dq, unexplained (n,). Output: row, in the
    order of :mod:`~contact_estimation.filters.estimate_row`.

    A contact's parameters are averaged over the filters that have it closed; where none has, over all.
    """
    wrench, parts, filters = wrench_parts(layout.n), contact_parts(layout), len(chain.owner)
    rows = wrench.size + sum(p.size for p in parts)
    own = shapes(layout, "published_probability nis q_now dq unexplained")
    s = symbols(ca.MX, table=(rows, filters), probabilities=filters, **own)
    weights = ca.if_else(s.probabilities >= s.published_probability, s.probabilities, 0)
    weights /= ca.sum1(weights)
    row = [s.nis, s.q_now]
    row.append(_matched(s.table[: wrench.size, :], weights, wrench["force_tcp"], wrench["force_covariance"]))
    row += [s.dq, s.unexplained, ca.DM(chain.label == np.arange(len(chain.names))[:, None]) @ s.probabilities]
    at = wrench.size
    for closed, part in zip(chain.closed.T, parts):
        share = weights * (ca.DM(closed) + _LEAST_SHARE)
        probability, table = ca.DM(closed).T @ s.probabilities, s.table[at : at + part.size, :]
        mixed = _matched(table, share / ca.sum1(share), part["values"], part["covariance"])
        normal = mixed[:3] / ca.norm_2(mixed[:3])
        row += [probability, mixed, ca.if_else(probability >= CLOSED, normal, ca.DM.nan(3))]
        at += part.size
    return named_function("imm_mixture", s, {"row": ca.vertcat(*row)})


def _matched(table: ca.MX, share: ca.MX, mean: slice, covariance: slice) -> ca.MX:
    """Moment-matched mixture of the columns of ``table``: the spread of the means is added to the covariance."""
    row = table @ share
    difference = table[mean, :] - ca.repmat(row[mean], 1, table.shape[1])
    spread = (difference * ca.repmat(share.T, difference.shape[0], 1)) @ difference.T
    return ca.vertcat(row[: covariance.start], row[covariance] + ca.vec(spread), row[covariance.stop :])


class Output:
    """Estimates of all filters, and their mixture.

    Args:
        settings: of the filter.
        layout: parts of the filters' state.
        chain: modes and filters.
        step: the filters.
        functions: compiled :func:`output_functions` by name.
        signals: buffers by name: settings, ``q_now``, ``dq`` and ``nis``.
        link: name of the link that known contacts touch.

    Attributes:
        arm: parts of a row that are of the arm.
    """

    def __init__(
        self,
        settings: ImmSettings,
        layout: StateLayout,
        chain: ModeChain,
        step: ImmStep,
        functions: Mapping[str, CompiledFunction],
        signals: Mapping[str, np.ndarray],
        link: str,
    ) -> None:
        self._link = link
        self._settings, self._layout, self._chain, self._step = settings, layout, chain, step
        mixture, function = functions["imm_mixture"], functions["imm_output"]
        self._row, table = mixture.outputs["row"], mixture.inputs["table"]
        mixture.inputs["published_probability"][0] = self._limit = settings.published_probability
        given = {**mixture.inputs, **signals, "probabilities": step.probabilities}
        self._mix = mixture.bind([given[name] for name in mixture.inputs], [self._row])
        self.arm = Parts(**_sizes(arm_parts(layout.n)), unexplained=layout.n, modes=len(chain.names))
        parts = contact_parts(layout)
        starts = np.cumsum([self.arm.size, *[1 + p.size + 3 for p in parts]]).tolist()
        self._contacts = list(zip(starts, parts))
        #: Probabilities that the contacts are closed, and ratios of standard deviations.
        self._closed = np.array(starts[:-1], int)
        self._ratios = np.concatenate(
            [np.arange(at + 1 + p["std_ratio"].start, at + 1 + p.size) for at, p in self._contacts]
        )
        self._table = table.reshape(len(chain.owner), -1)
        external = layout.parts["external"] if layout.has_external else slice(0)
        places = packed_places(layout.size)
        self._external = places[external, external]
        if layout.has_external:
            self._push_variance = places[(along := layout.parts["push_stiffness"].start), along]
        self._rows = []
        for j, (x, p) in enumerate(zip(step.x, step.p)):
            own = {"x": x, "P": p, "closed": chain.closed[j].copy(), "felt": chain.felt[j : j + 1].copy()}
            given = {**signals, **own}
            self._rows.append(function.bind([given[name] for name in function.inputs], [self._table[j]]))

    def reset(self) -> None:
        """Forget the outputs of the filters."""
        self._table[:] = 0.0

    def row(self) -> np.ndarray:
        """Return the row of the estimate now (a view)."""
        limit = self._limit
        for write, probability in zip(self._rows, self._step.probabilities.tolist()):
            if probability >= limit:
                write()
        self._mix()
        return self._row

    def words(self) -> tuple[bytes, bytes]:
        """Return which contacts are closed, and which of their parameters weakly observed, in the last :meth:`row`."""
        return (self._row[self._closed] >= CLOSED).tobytes(), (self._row[self._ratios] > _WEAK).tobytes()

    def contacts(self, row: np.ndarray) -> tuple[ContactState, ...]:
        """Return the contacts of a row."""
        found = []
        for c, part, (at, parts) in zip(self._settings.contacts, self._layout.contacts, self._contacts):
            own, where = row[at + 1 : at + 1 + parts.size], parts.where
            values, ratio = own[where["values"]], own[where["std_ratio"]]
            weak = tuple([name for name, value in zip(part.names, ratio.tolist()) if value > _WEAK])
            law = dict(zip([p.name for p in part.law.parameters], own[where["law"]].tolist()))
            found.append(
                ContactState(
                    c.name,
                    float(row[at]),
                    values[:3],
                    values[3:6],
                    values[6:],
                    own[where["point"]],
                    own[where["covariance"]].reshape(9, 9),
                    part.names,
                    ratio,
                    weak,
                    c.law,
                    law,
                    self._link if row[at] >= CLOSED else "",
                )
            )
        return tuple(found)

    def external_torque(self) -> ExternalTorque:
        """Return the external joint torque of the unknown contact, moment-matched over the filters of that mode.

        Zero where that mode is negligible (``published_probability``).
        Friction that has changed meanwhile is not in its covariance: a localizer learns the same link from it, later.
        """
        layout, step, rows = self._layout, self._step, np.flatnonzero(self._chain.felt)
        shares = step.probabilities[rows]
        probability = float(shares.sum())
        if probability < self._limit:
            return ExternalTorque(0.0, np.zeros(layout.n), np.zeros((layout.n, layout.n)))
        where, shares = layout.parts["external"], shares / probability
        torques = step.x[rows, where]
        torque: np.ndarray = np.asarray(shares @ torques)
        covariance = np.tensordot(shares, step.p[rows[:, None, None], self._external], 1)
        difference = torques - torque
        covariance += (difference.T * shares) @ difference
        return ExternalTorque(probability, torque, np.asarray(covariance), *self._push_stiffness(rows, shares))

    def _push_stiffness(self, rows: np.ndarray, shares: np.ndarray) -> tuple[float, float]:
        """Return stiffness along the push and standard deviation [N/m], NaN where motion shows none.

        Args:
            rows: filters of an unknown contact.
            shares: of these, their sum one.
        """
        values = self._step.x[rows, self._layout.parts["push_stiffness"].start]
        mean = float(shares @ values)
        variance = float(shares @ (self._step.p[rows, self._push_variance] + (values - mean) ** 2))
        std, unit = math.sqrt(variance), self._settings.unknown.stiffness
        shown = std < _WEAK and mean > _SHOWN * std
        return (unit * mean, unit * std) if shown else (math.nan, math.nan)


def _sizes(parts: Parts) -> dict[str, int]:
    return {name: where.stop - where.start for name, where in parts.where.items()}
