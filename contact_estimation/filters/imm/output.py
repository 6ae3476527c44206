"""Output of the IMM filter: force, external torque and contact parameters of every filter, and their mixture."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from contact_estimation.codegen import CompiledFunction, Parts, named_function, symbols
from contact_estimation.filters.imm.contact_law import ContactForces
from contact_estimation.filters.imm.imm_step import ImmStep
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.filters.imm.unknown import ExternalTorque, tcp_wrench
from contact_estimation.filters.kalman import packed_size, unpack, unpack_array
from contact_estimation.filters.observer import CLOSED, ContactState
from contact_estimation.robot import Arm

#: A parameter with more than this share of its prior standard deviation left is weakly observed: half of the variance.
_WEAK = 0.5**0.5
#: Keeps the shares of filters that have a contact closed defined where none has.
_LEAST_SHARE = 1e-9


def wrench_parts(n: int) -> Parts:
    """Return the parts of an output vector that are of the arm.

    Force and torque about the TCP in TCP axes, force in base axes, torque of the joints, covariance of the force.
    """
    return Parts(force_tcp=3, torque_tcp=3, force_base=3, torque=n, force_covariance=9)


def contact_parts(laws: list[int], estimated: list[int]) -> list[Parts]:
    """Return the parts of an output vector that are of each contact, after those of the arm.

    ``values``: [K n (3); x_rest (3); p_tcp (3)], ``covariance`` (9, 9) of these, ``point`` in the base frame (3,),
    ``law``: its own parameters, ``std_ratio``: posterior over prior standard deviation of every estimated entry.

    Args:
        laws: per contact the number of its law's parameters.
        estimated: per contact the number of estimated entries.
    """
    return [Parts(values=9, covariance=81, point=3, law=own, std_ratio=k) for own, k in zip(laws, estimated)]


def build_output(arm: Arm, state: FilterState) -> ca.Function:
    """Return the function of one filter's output at a configuration.

    Inputs: x (N,), P (packed), q_now (n,), closed (I,), theta (theta_size,), basis (9 I,), prior_variance (N,), felt:
    one where an unknown contact is, push_variance (6,) of it per second, birth_time [s]. Output:
    row: :func:`wrench_parts`, then :func:`contact_parts` of every contact.
    """
    size, count = state.size, len(state.contacts)
    s = symbols(x=size, P=packed_size(size), q_now=arm.n, closed=count, theta=state.theta_size, basis=9 * count)
    vars(s).update(vars(symbols(prior_variance=size, felt=1, push_variance=6, birth_time=1)))
    covariance, kinematics = unpack(s.P, size), arm.kinematics(s.q_now)
    forces = ContactForces(arm, state, kinematics, s.x, s.theta, s.basis, unilateral=True)
    rotation, _ = arm.tcp(kinematics)
    force, torque = forces.wrench_base(s.closed)
    gradient = ca.jacobian(rotation.T @ force, s.x)
    force_covariance, joint_torque = gradient @ covariance @ gradient.T, forces.joint_torque(s.closed)
    if state.has_external:
        where, variance = state.parts["external"], s.birth_time * s.push_variance
        jacobian = kinematics.jacobian(arm.tcp_frame)
        wrench, spread = tcp_wrench(jacobian, s.x[where], covariance[where, where], variance)
        force, torque, joint_torque = (
            known + s.felt * unknown
            for known, unknown in ((force, wrench[:3]), (torque, wrench[3:]), (joint_torque, s.x[where]))
        )
        force_covariance += s.felt * (rotation.T @ spread[:3, :3] @ rotation)
    row = [rotation.T @ force, rotation.T @ torque, force, joint_torque, ca.vec(force_covariance)]
    std_ratio = ca.sqrt(ca.diag(covariance) / s.prior_variance)
    for contact in forces.contacts:
        values = ca.vertcat(contact.normal * contact.closed.stiffness, contact.rest, contact.point_tcp)
        slope = ca.jacobian(values, s.x)
        row += [values, ca.vec(slope @ covariance @ slope.T), contact.point, contact.closed.parameters]
        row.append(std_ratio[contact.part.where])
    return named_function("imm_output", s, {"row": ca.vertcat(*row)})


class Output:
    """Estimates of all filters, and their mixture.

    Args:
        settings: of the filter.
        state: the filters' state.
        chain: modes and filters.
        step: the filters.
        function: compiled :func:`build_output`.
        signals: buffers by name: settings, and ``q_now``.
        link: name of the link that known contacts touch.
    """

    def __init__(
        self,
        settings: ImmSettings,
        state: FilterState,
        chain: ModeChain,
        step: ImmStep,
        function: CompiledFunction,
        signals: Mapping[str, np.ndarray],
        link: str,
    ) -> None:
        self._link = link
        self._settings, self._state, self._chain, self._step = settings, state, chain, step
        self.wrench = wrench_parts(state.n)
        contacts = state.contacts
        parts = contact_parts([len(c.law.parameters) for c in contacts], [len(c.names) for c in contacts])
        ends = np.cumsum([self.wrench.size, *[p.size for p in parts]]).tolist()
        self._contacts = [(slice(start, start + p.size), p) for start, p in zip(ends, parts)]
        self._table = np.zeros((len(chain.owner), ends[-1]))
        self._rows = []
        for j, (x, p) in enumerate(zip(step.x, step.p)):
            given = {**signals, "x": x, "P": p, "closed": chain.closed[j].copy(), "felt": chain.felt[j : j + 1].copy()}
            self._rows.append(function.bind([given[name] for name in function.inputs], [self._table[j]]))

    def row(self) -> np.ndarray:
        """Return the output vector now: the mixture of all filters that are not negligible."""
        probabilities = self._step.probabilities
        limit = self._settings.published_probability
        chosen = [j for j, probability in enumerate(probabilities.tolist()) if probability >= limit]
        for j in chosen:
            self._rows[j]()
        if len(chosen) == 1:
            return np.array(self._table[chosen[0]])
        return self._mixture(self._table[chosen], probabilities[chosen], self._chain.closed[chosen])

    def _mixture(self, table: np.ndarray, probabilities: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """Moment-matched mixture of the rows ``table``.

        A contact's parameters are averaged over the filters that have it closed; where none has, over all.
        """
        probabilities = probabilities / probabilities.sum()
        row: np.ndarray = np.asarray(probabilities @ table)
        where = self.wrench.where
        _add_spread(row, table, probabilities, where["force_tcp"], where["force_covariance"])
        for i, (place, parts) in enumerate(self._contacts):
            share = probabilities * (closed[:, i] + _LEAST_SHARE)
            share /= share.sum()
            row[place] = share @ table[:, place]
            _add_spread(row[place], table[:, place], share, parts["values"], parts["covariance"])
        return row

    def contacts(self, row: np.ndarray) -> tuple[ContactState, ...]:
        """Return the contacts of an output vector, with the probabilities that they are closed."""
        probabilities = (self._step.probabilities @ self._chain.closed).tolist()
        found = []
        for c, part, (place, parts), probability in zip(
            self._settings.contacts, self._state.contacts, self._contacts, probabilities
        ):
            own = row[place]
            values, ratio, where = own[parts["values"]], own[parts["std_ratio"]], parts.where
            weak = tuple([name for name, value in zip(part.names, ratio.tolist()) if value > _WEAK])
            law = dict(zip([p.name for p in part.law.parameters], own[where["law"]].tolist()))
            found.append(
                ContactState(
                    c.name,
                    probability,
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
                    self._link if probability >= CLOSED else "",
                )
            )
        return tuple(found)

    def external_torque(self) -> ExternalTorque:
        """Return the external joint torque of the unknown contact, moment-matched over the filters of that mode."""
        state, step, rows = self._state, self._step, np.flatnonzero(self._chain.felt)
        shares = step.probabilities[rows]
        probability = float(shares.sum())
        if not probability > 0.0:
            return ExternalTorque(0.0, np.zeros(state.n), np.zeros((state.n, state.n)))
        where, shares = state.parts["external"], shares / probability
        torques = step.x[rows, where]
        torque: np.ndarray = np.asarray(shares @ torques)
        covariance = sum(w * unpack_array(step.p[j], state.size)[where, where] for w, j in zip(shares, rows))
        difference = torques - torque
        return ExternalTorque(probability, torque, np.asarray(covariance + (difference.T * shares) @ difference))


def _add_spread(row: np.ndarray, table: np.ndarray, share: np.ndarray, mean: slice, covariance: slice) -> None:
    """Add the spread of the means to the covariance, in place."""
    difference = table[:, mean] - row[mean]
    row[covariance] += ((difference.T * share) @ difference).ravel()
