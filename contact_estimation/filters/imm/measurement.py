"""Update of one filter with a block of samples: prediction, then scalar by scalar, re-linearised and gated.

Measurements: m elastic channels y = o + (tau_e - G) / k, then n torque channels y = tau_e - (b + c s + v). tau_e is
that of the closed contacts, or the external torque of an unknown one, and that of a payload. The noise of an innovation
beyond the gate is raised until it lies on the gate. An outlier (such as the torque spike of a stop) then changes the
state little, and the likelihood stays finite. The parameters of an open contact return to their prior at the arm's
current position, because the contact will close there. The external torque returns to its prior if no unknown contact
acts.

One generated function updates one scalar; it is called once per channel.
"""

from __future__ import annotations

from types import SimpleNamespace

import casadi as ca

from contact_estimation.codegen import call_named, named_function, symbols
from contact_estimation.filters.imm.contact_law import ContactForces, contacts_at
from contact_estimation.filters.imm.prediction import build_prediction, way_share
from contact_estimation.filters.imm.signals import shapes
from contact_estimation.filters.imm.state import LEAST_DEFLECTION, StateLayout
from contact_estimation.filters.imm.unknown import push_covariance
from contact_estimation.filters.kalman import pack, packed_outer, unpack
from contact_estimation.robot import Arm

#: Probability that a contact that closes where the arm is presses already.
UNDECIDED = 0.5
#: Parameters of a contact: how firmly it presses, where, and what joint friction passes as.
_PRESSURE, _POINT, _GEOMETRY = ("stiffness", "rest"), ("point_x", "point_y"), ("tilt_1", "tilt_2", "point_z")
#: The place along the tool: only lateral force has a torque by it.
_LEVER = ("point_z",)
#: Parts of a contact that take a share of an update.
_PARTLY = ("stiffness", "point")
#: [N^2] Keeps shares of a force defined where there is none.
_LEAST_SQUARE = 1e-9
#: [Nm^2] Keeps the regression on a Coulomb amplitude defined where that is known.
_LEAST_COULOMB_VARIANCE = 1e-12
#: A contact this many standard deviations from the surface counts as open; the bound keeps the logarithm finite.
_FAR = -7.0


def build_update(arm: Arm, layout: StateLayout) -> ca.Function:
    """Return the function of one filter's prediction and update.

    Inputs are :mod:`.signals` of the filter, of the block and of the settings.

    Outputs:

    - x_next, P_next. log_likelihood. pressed (I,): probability that a closed contact presses.
    - normalised (m + n,): innovation over its standard deviation before gating.
    - unexplained (n,) [Nm]: torque measured, less that of the updated state.
    - deflection (m,) [rad]: of the elastic joints by contacts.
    """
    predict, scalar, finish = build_prediction(layout), _build_scalar(layout), _build_finish(arm, layout)
    shown = _build_shown(layout)
    geometry, depths, channels, unexplained = _build_channels(arm, layout)
    names = "x P decay noise y R q_mean presliding_mean motion_noise closed theta basis prior prior_variance touch gate"
    names += " max_stiffness_step lower upper pressed_before felt walk motion_share push_covariance duration birth_time"
    names += " relative_variance slip_direction push_share load within_noise law_variance tcp_pose tcp_before slid"
    names += " normal_variance geometry_from_torque friction_moves normal_way stiffness_way hysteresis noise_share"
    names += " depth_variance steady_pose steady_before push_regression tcp_jacobian unit_stiffness push_held turn"
    names += " point_from_torque"
    s = symbols(ca.MX, **shapes(layout, names))
    fixed = call_named(geometry, s)
    now = call_named(predict, s)
    here = call_named(depths, {"x": now.x_next}, fixed, s)
    now.aligned_next = here.depth
    residual = call_named(unexplained, {"x": now.x_next, "aligned": here.depth}, fixed, s)
    known = call_named(shown, {"x": now.x_next, "P": now.P_next}, here, residual, s)
    log_likelihood, normalised = 0, []
    for k, function in enumerate(channels):
        before = {"x": now.x_next, "P": now.P_next, "aligned": now.aligned_next} | vars(known)
        predicted = call_named(function, before | {"y": s.y[k]}, fixed, s)
        now = call_named(scalar, before | {"variance": s.R[k], "noise_share": s.noise_share[k]}, predicted, s)
        log_likelihood += now.log_likelihood
        normalised.append(now.normalised)
    left = call_named(unexplained, {"x": now.x_next, "aligned": now.aligned_next}, fixed, s)
    after = call_named(depths, {"x": now.x_next}, fixed, s)
    deeper = after.depth - now.aligned_next
    aligned = call_named(_build_alignment(layout), {"P": now.P_next, "deeper": deeper}).P_next
    allowed = call_named(_build_friction_bound(layout), {"x": now.x_next, "P": aligned}).x_next
    last = call_named(finish, {"x": allowed, "P": aligned}, s)
    outputs = {
        "x_next": last.x_next,
        "P_next": last.P_next,
        "log_likelihood": log_likelihood + last.log_likelihood,
        "normalised": ca.vertcat(*normalised),
        "unexplained": left.unexplained,
        "pressed": last.pressed,
        "deflection": after.deflection,
    }
    return named_function("imm_update", s, outputs)


def _build_shown(layout: StateLayout) -> ca.Function:
    """Shares (N,) of an update that reach the entries of the state.

    Where the arm stands, slow errors of torque and friction would be learnt as stiffness of a contact. Only a way along
    the normal that is not small beside the depth shows it, once it is better known than before the touch.

    They would be learnt as a place of the contact point, too: a lever times a force that does not change is a torque
    bias. Only a force that changes shows it, and a tool that turns. Torque without joint friction shows it at any time
    (``point_from_torque``): behind the gears, or where ``geometry_from_torque`` says so.

    The hysteresis h of a gear would be learnt as its stiffness where only torque shows the load. There the stiffness
    takes the share u / (u + h^2) of an update, with the variance u of the deflection by the uncertain stiffness. A
    contact whose motion shows its stiffness shows its load, too.
    """
    names = "P prior_variance depth normal_way stiffness_way x deflection unexplained hysteresis R gate closed"
    s = symbols(**shapes(layout, names + " turn point_from_torque"))
    covariance, shown = unpack(s.P, layout.size), ca.SX.ones(layout.size)
    stiffness_shown = ca.SX.ones(len(layout.contacts))
    for i, contact in enumerate(layout.contacts):
        (k,) = contact.indices("stiffness")
        if k is not None:
            known = covariance[k, k] / s.prior_variance[k]
            share = ca.fmax(way_share(s, s.normal_way[i], s.depth[i]), known)
            shown[k] = stiffness_shown[i] = ca.fmin(share, 1)
        point = [k for k in contact.indices("point") if k is not None]
        if point:
            way = s.normal_way[i] + s.turn[i] * ca.sqrt(ca.sum1(s.prior_variance[point]))
            shown[point] = ca.fmax(way_share(s, way, s.depth[i]), s.point_from_torque[i])
    joints = layout.parts["joint_stiffness"]
    most = s.gate * ca.sqrt(s.R[layout.m :])  # of what is no outlier
    torque = ca.fmin(ca.fmax(s.unexplained, -most), most)[layout.elastic_joints]
    expected = s.deflection + ca.exp(-s.x[joints]) * torque
    unexpected = ca.diag(covariance[joints, joints]) * expected**2  # (m,) [rad^2]
    beside = unexpected / (unexpected + s.hysteresis**2 + LEAST_DEFLECTION**2)
    shown[joints] = ca.fmax(beside, ca.mmax(s.closed * stiffness_shown))
    return named_function("shown", s, {"shown": shown})


def _build_alignment(layout: StateLayout) -> ca.Function:
    """After an update errors of the stiffness leave the force as it is at the new depth: an update is no motion."""
    s = symbols(**shapes(layout, "P"), deeper=len(layout.contacts))
    along = ca.SX.eye(layout.size)
    for i, k, rest in layout.stiffness_and_rest:
        along[rest, k] = -s.deeper[i]
    return named_function("alignment", s, {"P_next": pack(along @ unpack(s.P, layout.size) @ along.T)})


def _build_friction_bound(layout: StateLayout) -> ca.Function:
    """Coulomb friction is not below zero: a mean that is goes back to zero, and what is correlated goes along.

    A push that turns with the motion, as of a hand that guides the arm, looks like friction that drives. Projection
    x - P e (e^T P e)^-1 min(e^T x, 0) with the unit vector e of a Coulomb amplitude (Simon, Kalman filtering with state
    constraints, 2010, eq. 3.5). The covariance stays, which is on the safe side.
    """
    s = symbols(**shapes(layout, "x P"))
    covariance, x = unpack(s.P, layout.size), ca.SX(s.x)
    for k in range(layout.size)[layout.parts["coulomb"]]:
        x -= covariance[:, k] * (ca.fmin(x[k], 0) / ca.fmax(covariance[k, k], _LEAST_COULOMB_VARIANCE))
    return named_function("friction_bound", s, {"x_next": x})


def _build_channels(arm: Arm, layout: StateLayout) -> tuple[ca.Function, ca.Function, list[ca.Function], ca.Function]:
    """Build every channel at a state.

    Outputs: innovation; row (N,) of the measurement; own (N,): the covariance times the row without the contacts'
    entries, which are the same in all channels.

    Returns:
        What depends on the block alone (kinematics at q_mean, contacts that are closed); the contacts' depths; per
        channel the rest; and the innovations of the torque channels alone, of measurements ``y`` (m + n,).
    """
    n, size, where = arm.n, layout.size, layout.parts.where
    block = symbols(**shapes(layout, "q_mean closed theta basis slip_direction load geometry_from_torque"))
    s = symbols(**shapes(layout, "x P"), y=1, **shapes(layout, "presliding_mean felt aligned"))
    kinematics = arm.kinematics(block.q_mean)
    forces = ContactForces(
        arm, kinematics, contacts_at(layout, arm.tcp(kinematics), s.x, block.theta, block.basis, block.slip_direction)
    )
    torque = block.load + forces.joint_torque(block.closed)
    if layout.has_external:
        torque += s.felt * s.x[where["external"]]
    gravity = arm.body.gravity_torque(kinematics)
    elastic = ca.exp(-s.x[where["joint_stiffness"]])  # compliance
    channels = ca.vertsplit(layout.channels(s.x, torque, gravity, s.presliding_mean))
    hidden = _hidden_slopes(layout, forces, elastic, s.x, unpack(s.P, size), block.closed, block.geometry_from_torque)
    rows = ca.vertsplit(ca.jacobian(ca.vertcat(*channels), s.x) - hidden)
    deflection = elastic * (torque - block.load)[layout.elastic_joints]
    expressions, split, fixed = ca.extract_parametric(
        [*channels, *rows, deflection, forces.depth], list(vars(block).values()), {"extract_trivial": True}
    )
    geometry = named_function("geometry", block, {"fixed": ca.vertcat(*fixed)})
    s.fixed = ca.SX.sym("fixed", geometry.numel_out(0))
    expressions = ca.substitute(expressions, [ca.vertcat(*split)], [s.fixed])
    depth, deflection = expressions.pop(), expressions.pop()
    at = SimpleNamespace(x=s.x, fixed=s.fixed, felt=s.felt)
    depths = named_function("depths", at, {"depth": depth, "deflection": deflection})
    covariance, functions = unpack(s.P, size), []
    for k, (channel, row) in enumerate(zip(expressions[: len(channels)], expressions[len(channels) :])):
        for i, stiffness, rest in layout.stiffness_and_rest:
            row[stiffness] -= row[rest] * (depth[i] - s.aligned[i])
        own = ca.sparsify(ca.horzcat(ca.SX(1, where["contacts"].stop), row[where["contacts"].stop :]))
        outputs = {"innovation": s.y - channel, "row": row.T, "own": covariance @ own.T, "depth": depth}
        functions.append(named_function(f"channel_{k}", s, outputs))
    measured = SimpleNamespace(**{**vars(s), "y": ca.SX.sym("y", layout.m + n)})
    left = measured.y[layout.m :] - ca.vertcat(*expressions[layout.m : len(channels)])
    return geometry, depths, functions, named_function("torque_innovation", measured, {"unexplained": left})


def _hidden_slopes(
    layout: StateLayout,
    forces: ContactForces,
    elastic: ca.SX,
    x: ca.SX,
    covariance: ca.SX,
    closed: ca.SX,
    geometry_from_torque: ca.SX,
) -> ca.SX:
    """Slopes (m + n, N) of the channels that the filter does not learn from.

    Friction is a coefficient times the normal force, but shows nothing about it: the filter takes noise of the torque
    for friction, and the normal force would follow the part of the noise that fits the friction of the moment.
    Where joint friction is in the torque, a tilt of the normal and a lever along the tool would follow that, and the
    point the friction of the contact. Then only motion shows tilt and lever. Elsewhere the torque shows a lever by the
    lateral force, but not by the share of it that may be noise of the estimate.

    Args:
        layout: parts of the filters' state.
        forces: of the contacts.
        elastic: compliance (m,) [rad/Nm] of the elastic joints.
        x: (N,) state.
        covariance: (N, N) of it.
        closed: (I,) one where a contact is closed.
        geometry_from_torque: (I,) one where the torque shows a contact's tilt and its place along the tool.
    """
    slopes = ca.SX(layout.m + layout.n, layout.size)

    def by(wanted: list[int], force: ca.SX) -> ca.SX:
        torque = closed[i] * forces.point_torque(contact, force)
        return ca.jacobian(ca.vertcat(elastic * torque[layout.elastic_joints], torque), x)[:, wanted]

    for i, contact in enumerate(forces.contacts):
        names = dict(zip(contact.part.names, range(layout.size)[contact.part.where]))
        pressure, point, geometry = ([names[k] for k in part if k in names] for part in (_PRESSURE, _POINT, _GEOMETRY))
        slopes[:, geometry] += (1 - geometry_from_torque[i]) * by(geometry, contact.force)
        lever = [names[k] for k in _LEVER if k in names]
        noisy = _noise_share(contact.axes[:, 1:].T @ contact.force, x, covariance)
        slopes[:, lever] += geometry_from_torque[i] * noisy * by(lever, contact.force)
        if contact.part.friction:
            friction = contact.closed.axes[:, 1:] @ contact.closed.force[1:]
            slopes[:, pressure] += by(pressure, friction)
            slopes[:, point] += (1 - geometry_from_torque[i]) * by(point, friction)
    return slopes


def _noise_share(force: ca.SX, x: ca.SX, covariance: ca.SX) -> ca.SX:
    """Return the share of a force's square that its variance is, as in the regression on a variable with errors."""
    gradient = ca.jacobian(force, x)
    variance = ca.trace(gradient @ covariance @ gradient.T)
    return variance / (ca.sumsqr(force) + variance + _LEAST_SQUARE)


def _build_scalar(layout: StateLayout) -> ca.Function:
    """Kalman update with one gated scalar.

    ``aligned`` (I,) [m] are the depths at which errors of ln K and d leave the contacts' forces as they are. ``shown``
    (N,) are the shares of the update that the entries of the state take (Brink, Partial-update Schmidt-Kalman filter,
    2017).
    """
    size, bounded, where = layout.size, layout.bounded, layout.parts["contacts"]
    given = shapes(layout, "gate max_stiffness_step lower upper depth aligned") | {"shown": size, "noise_share": 1}
    s = symbols(**shapes(layout, "x P"), innovation=1, variance=1, row=size, own=size, **given)
    cross = unpack(s.P, size)[:, where] @ s.row[where] + s.own
    expected = ca.dot(s.row, cross) + s.variance
    total = ca.fmax(expected, s.innovation**2 / s.gate**2)  # the noise that puts it on the gate
    gain = cross / total
    covariance = unpack(s.P - packed_outer(cross, gain), size)
    partly = [k for c in layout.contacts for part in _PARTLY for k in c.indices(part) if k is not None]
    partly += range(size)[layout.parts["joint_stiffness"]]
    share = s.shown[partly]
    covariance[partly, partly] += ((1 - share) * cross[partly]) @ ((1 - share) * gain[partly]).T
    gain[partly] *= share
    step, slope, aligned = _curved_step(layout, s, gain * s.innovation)
    x = s.x + step
    if bounded:
        x[bounded] = ca.fmin(ca.fmax(x[bounded], s.lower), s.upper)
    outputs = {
        "x_next": x,
        "P_next": pack(slope @ covariance @ slope.T),
        "aligned_next": aligned,
        "log_likelihood": -0.5 * (ca.log(likely := s.noise_share * total) + s.innovation**2 / likely),
        "normalised": s.innovation / ca.sqrt(expected),
    }
    return named_function("scalar_update", s, outputs)


def _curved_step(layout: StateLayout, s: SimpleNamespace, step: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the state's step (N,) that a linear step stands for, its slope (N, N), and the depths ``aligned`` (I,).

    The force is linear in K. A rise k of ln K beyond ``max_stiffness_step`` is too large to be linear: an arm meets a
    surface much harder than expected. Then K itself rises by that share, and d goes along so that the force is that of
    the linear step,

        K' = K (1 + k),   K' depth' = K (depth + k aligned + step of d).

    Smaller steps are steps of ln K, and a fall is bounded: of a fall of K, a contact that is none would become a soft
    one.

    Args:
        layout: parts of the filters' state.
        s: symbols of :func:`_build_scalar`.
        step: (N,) linear step.
    """
    step, slope, aligned, most = ca.SX(step), ca.SX.eye(layout.size), ca.SX(s.aligned), s.max_stiffness_step
    for i, contact in enumerate(layout.contacts):
        (k,), (rest,) = contact.indices("stiffness"), contact.indices("rest")
        if k is None:
            continue
        steep = step[k] > ca.exp(most) - 1
        rise = ca.if_else(steep, step[k], 0)  # of K, relative
        softer = 1 / (1 + rise)
        if rest is not None:
            aligned[i] = (s.depth[i] + rise * s.aligned[i] + step[rest]) * softer
            slope[rest, rest], slope[rest, k] = softer, (s.aligned[i] - aligned[i]) * softer
            step[rest] = aligned[i] - s.depth[i]
        slope[k, k] = softer
        step[k] = ca.if_else(steep, ca.log(1 + rise), ca.fmin(ca.fmax(step[k], -most), most))
    return step, slope, aligned


def _build_finish(arm: Arm, layout: StateLayout) -> ca.Function:
    """Build the likelihood of closed contacts' depths; open contacts return to their prior.

    A closed contact must press. The ratio of that probability after and before the block is the likelihood. Its product
    over all blocks is the present probability: standstill adds no evidence, and a retreat opens the contact at once. A
    pull beyond the gate lowers the likelihood in every block.
    """
    size, count = layout.size, len(layout.contacts)
    names = "x P q_mean closed theta basis prior prior_variance touch pressed_before felt push_covariance birth_time"
    s = symbols(**shapes(layout, names + " gate"))
    at, covariance = ca.SX.sym("at", size), unpack(s.P, size)
    kinematics = arm.kinematics(s.q_mean)
    forces = ContactForces(arm, kinematics, contacts_at(layout, arm.tcp(kinematics), at, s.theta, s.basis))
    # The test uses the force, not the depth: a stiff contact of uncertain depth may pull with a certain force.
    force = ca.vertcat(*[contact.normal_force for contact in forces.contacts])
    force, gradients = ca.substitute([force, ca.jacobian(force, at)], [at], [s.x])
    log_likelihood, pressed = 0, []
    for i in range(count):
        row = gradients[i, :].T
        pressing = force[i] / ca.sqrt(ca.bilin(covariance, row, row))
        probability = _normal(pressing)
        surely = ca.log(_normal(pressing + s.gate))
        log_likelihood += s.closed[i] * (ca.log(probability / s.pressed_before[i]) + surely)
        pressed.append(s.closed[i] * probability + (1 - s.closed[i]) * UNDECIDED)
    mean, own = _prior(forces, layout, at, s, s.birth_time)
    keep, opened = ca.SX.ones(size), ca.SX.zeros(size, size)
    for i, contact in enumerate(layout.contacts):
        where = contact.where
        keep[where] = s.closed[i]
        opened[where, where] = (1 - s.closed[i]) * own[where, where]
    if layout.has_external:
        for where in (layout.parts["external"], layout.parts["push_stiffness"]):
            keep[where] = s.felt
            opened[where, where] = (1 - s.felt) * own[where, where]
    outputs = {
        "x_next": keep * s.x + (1 - keep) * mean,
        "P_next": pack(covariance * (keep @ keep.T) + opened),
        "log_likelihood": log_likelihood,
        "pressed": ca.vertcat(*pressed),
    }
    return named_function("finish", s, outputs)


def _normal(z: ca.SX) -> ca.SX:
    """Cumulative standard normal distribution, bounded from below."""
    return 0.5 * (1 + ca.erf(ca.fmax(z, _FAR) / 2**0.5))


def build_prior(arm: Arm, layout: StateLayout) -> ca.Function:
    """Return the function of the state before anything was measured, at a configuration.

    Inputs are :mod:`.signals`. Outputs: x (N,), P (packed).
    """
    names = "q_mean theta basis prior prior_variance touch push_variance link_share birth_time_first"
    s = symbols(**shapes(layout, names))
    given = dict(vars(s))
    s.push_covariance = push_covariance(arm, arm.kinematics(s.q_mean), s.push_variance, s.link_share)
    at = ca.SX.sym("at", layout.size)
    kinematics = arm.kinematics(s.q_mean)
    forces = ContactForces(arm, kinematics, contacts_at(layout, arm.tcp(kinematics), at, s.theta, s.basis))
    mean, covariance = _prior(forces, layout, at, s, s.birth_time_first)
    return named_function("imm_prior", SimpleNamespace(**given), {"x": mean, "P": pack(covariance)})


def _prior(
    forces: ContactForces, layout: StateLayout, at: ca.SX, s: SimpleNamespace, birth_time: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Mean and covariance of contacts that would close now, everything else as given; ``forces`` at the state ``at``.

    At touch the gap is known, not the rest position. The depth is then as uncertain as the gap, the slip is zero. A
    configured height is known in the base frame, so that the depth has the error of the contact point.
    """
    mean, correlate = ca.SX(s.prior), ca.SX.eye(layout.size)
    for i, contact in enumerate(forces.contacts):
        (rest,) = contact.part.indices("rest")
        if rest is not None:
            here = ca.dot(contact.normal, contact.point)
            here, slope = ca.substitute([here, ca.jacobian(here, at)], [at], [s.prior])
            mean[rest] = (1 - s.touch[i]) * (s.prior[rest] - here)
            correlate[rest, :] -= (1 - s.touch[i]) * slope
    covariance = correlate @ ca.diag(s.prior_variance) @ correlate.T
    if layout.has_external:
        covariance[layout.parts["external"], layout.parts["external"]] = birth_time * s.push_covariance
    return mean, covariance
