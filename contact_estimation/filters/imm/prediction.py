"""Prediction of one filter over a block of samples."""

from __future__ import annotations

from types import SimpleNamespace

import casadi as ca

from contact_estimation.codegen import named_function, symbols
from contact_estimation.filters.imm.contact_law import ContactExpressions, contacts_at, pose_of
from contact_estimation.filters.imm.signals import shapes
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.unknown import push_response
from contact_estimation.filters.kalman import pack, unpack

#: [m] Keeps the direction of a way, and its share in a depth, defined where there is none.
_LEAST_WAY = 1e-9


def way_share(s: SimpleNamespace, way: ca.SX, depth: ca.SX) -> ca.SX:
    """Share, at most one, of an update or of a random walk that reaches a contact's stiffness, or its point.

    It is the fourth power of a ratio: small ways, as of a controller that trembles, add up to little in a long press.

    Args:
        s: symbol stiffness_way.
        way: along the normal in the last second [m]; for the point also by a turn of the tool.
        depth: of the contact [m].
    """
    share: ca.SX = ca.fmin(way / (s.stiffness_way * ca.fabs(depth) + _LEAST_WAY), 1) ** 4
    return share


def build_prediction(layout: StateLayout) -> ca.Function:
    """Over a block the contacts move with the arm, and every entry decays to its prior mean.

    Within the encoders' noise (``within_noise``) the depth is kept: see :func:`_process_noise`. Nor does motion within
    it show how a surface is tilted or where the contact point is: depth and slip have their derivatives by these over
    the steady part of the motion (``steady_pose``).
    """
    size, external = layout.size, layout.parts["external"]
    names = "x P decay noise motion_noise prior walk motion_share push_covariance duration relative_variance felt"
    names += " push_share within_noise push_regression tcp_jacobian unit_stiffness prior_variance law_variance theta"
    names += " basis tcp_pose tcp_before slid normal_variance friction_moves depth_variance push_held"
    names += " normal_way stiffness_way"
    s = symbols(**shapes(layout, names + " steady_pose steady_before"))
    decay, disturbance = ca.SX(s.decay), layout.parts["disturbance"]
    decay[disturbance] = 1 - (1 - s.decay[disturbance]) * s.friction_moves
    before, pose, last = unpack(s.P, size), pose_of(s.tcp_pose), pose_of(s.tcp_before)
    contacts = contacts_at(layout, pose, s.x, s.theta, s.basis, reference=last)
    moved = _carried(s.x, contacts)
    steady = contacts_at(layout, pose_of(s.steady_pose), s.x, s.theta, s.basis, reference=pose_of(s.steady_before))
    if layout.has_external:
        force = s.push_regression @ s.x[external]
        stiffness = s.felt * s.push_held * s.unit_stiffness * s.x[layout.parts["push_stiffness"]]
        way = s.push_share * (pose[1] - last[1])
        moved[external] += push_response(s.tcp_jacobian, given := ca.SX.sym("force", 3), stiffness, way)
    transition = ca.jacobian(moved, s.x)
    geometry = [k for c in layout.contacts for part in ("tilt", "point") for k in c.indices(part) if k is not None]
    transition[:, geometry] = ca.jacobian(_carried(s.x, steady), s.x)[:, geometry]
    if layout.has_external:  # errors of its direction do not count
        moved, transition = ca.substitute([moved, transition], [given], [force])
    transition = transition @ ca.diag(decay)
    x = decay * moved + (1 - decay) * s.prior
    for i, contact in enumerate(contacts):
        (depth,) = contact.part.indices("rest")
        if depth is not None:
            x[depth] += s.within_noise[i]
    covariance = transition @ before @ transition.T + ca.diag(_process_noise(layout, s, x, before))
    for i, contact in enumerate(contacts):
        tilt = [k for k in contact.part.indices("tilt") if k is not None]
        if tilt:  # the normal turns towards where the tool goes: only that motion shows it
            along = contact.axes[:, 1:].T @ s.slid
            way = ca.fmax(ca.norm_2(along), _LEAST_WAY)
            covariance[tilt, tilt] += s.normal_variance[i] / way * (along @ along.T)
    if layout.has_external:
        relative = s.relative_variance * (s.x[external] @ s.x[external].T)  # a push that grows keeps its direction
        covariance[external, external] += s.walk * s.duration * (s.push_covariance + relative)
    return named_function("prediction", s, {"x_next": x, "P_next": pack(covariance)})


def _carried(x: ca.SX, contacts: list[ContactExpressions]) -> ca.SX:
    """Return the state (N,) ``x`` with the contacts' depths and slips where the arm is."""
    carried = ca.SX(x)
    for contact in contacts:
        for part, value in (("rest", contact.closed.depth), ("rest_tangential", contact.closed.slip)):
            for k, where in enumerate(contact.part.indices(part)):
                if where is not None:
                    carried[where] = value[k]
    return carried


def _process_noise(layout: StateLayout, s: SimpleNamespace, x: ca.SX, before: ca.SX) -> ca.SX:
    """Return the process noise (N,) of a block: variances that are added to those of the state.

    Only motion beyond the encoders' noise shows a contact's stiffness ln K. Within that noise the depth is kept, and
    its variance grows by the square of the motion times the spread of K. Without this the filter would learn from
    noise: motion without a force looks soft, force without a motion looks hard. In a long press the stiffness would
    reach zero, or grow without bound (Soderstrom, Errors-in-variables methods in system identification, 2007).

    The force departs from its law by a share. The stiffness of a body may change with depth, and from place to place:
    ln K is a random walk over the way into it, and over the time in which the arm moves along the normal. In a press
    that stands, K stays as well known as it is, also where the controller trembles. It is never less known than before
    the touch.

    Args:
        layout: parts of the filters' state.
        s: symbols of :func:`build_prediction`.
        x: (N,) predicted state.
        before: (N, N) covariance before the block.
    """
    noise, disturbance, m = ca.SX(s.noise), layout.parts["disturbance"], layout.m
    noise[disturbance] *= s.friction_moves
    noise[layout.parts["offset"]] += s.motion_share * s.motion_noise[:m]
    noise[disturbance] += s.motion_share * s.motion_noise[m:]
    for i, part in enumerate(layout.contacts):
        (stiffness,), (depth,) = part.indices("stiffness"), part.indices("rest")
        if stiffness is not None:
            if depth is not None:
                noise[stiffness] *= way_share(s, s.normal_way[i], x[depth])
                noise[stiffness] += s.depth_variance[i] * ca.fabs(x[depth] - s.x[depth])
            noise[stiffness] *= ca.fmax(1 - before[stiffness, stiffness] / s.prior_variance[stiffness], 0)
    for i, k, rest in layout.stiffness_and_rest:
        noise[rest] += s.law_variance[i] * s.duration * x[rest] ** 2
        noise[rest] += s.within_noise[i] ** 2 * ca.exp(before[k, k])
    return noise
