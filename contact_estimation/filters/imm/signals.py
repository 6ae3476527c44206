"""Signals of the generated code: everything that several functions of the filter read or write, by name.

:class:`~contact_estimation.filters.imm.observer.ContactImm` has one buffer per signal. A function that has an argument
of that name reads the buffer, one that has a result of that name writes it. There are N entries of a filter's state, n
joints, m elastic joints and I contacts. Matrices are stored column by column, symmetric covariances P packed.
"""

from __future__ import annotations

from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import packed_size

#: Rows, or (rows, columns).
Shape = int | tuple[int, int]


def shapes(layout: StateLayout, names: str) -> dict[str, Shape]:
    """Return the shapes of signals, in the order of ``names``.

    Args:
        layout: parts of the filters' state.
        names: of the signals, separated by spaces.
    """
    known = all_shapes(layout)
    return {name: known[name] for name in names.split()}


def all_shapes(layout: StateLayout) -> dict[str, Shape]:
    """Return the shape of every signal by name."""
    return _of_filter(layout) | _of_block(layout) | _of_settings(layout)


def _of_filter(layout: StateLayout) -> dict[str, Shape]:
    """Signals that each filter has for itself."""
    size, m, contacts = layout.size, layout.m, len(layout.contacts)
    return {
        "x": size,  # mean of the state
        "P": packed_size(size),  # its covariance
        "decay": size,  # share of a deviation from the prior that a block leaves
        "noise": size,  # process noise of a block
        "lower": len(layout.bounded),  # bounds of the bounded entries
        "upper": len(layout.bounded),
        "closed": contacts,  # one where a known contact is closed
        "pressed_before": contacts,  # probability that it pressed before the block
        "felt": 1,  # one where an unknown contact acts
        "walk": 1,  # share of the random walk that the unknown contact has
        "motion_share": 1,  # share of ``motion_noise`` that friction and offset take
        "depth": contacts,  # [m] of the contacts
        "aligned": contacts,  # [m] depths at which errors of ln K and d leave the force as it is
        "deflection": m,  # [rad] of the elastic joints by contacts
        "unexplained": layout.n,  # [Nm] torque measured, less that of the state
    }


def _of_block(layout: StateLayout) -> dict[str, Shape]:
    """Signals of a sample and of a block of samples, and of what goes on beside the filters."""
    n, m, contacts = layout.n, layout.m, len(layout.contacts)
    return {
        "q": n,  # [rad] of a sample
        "dq": n,  # [rad/s]
        "tau": n,  # [Nm]
        "dt": 1,  # [s] since the last sample
        "filter_gain": 1,  # of the low-pass of the positions, for one sample
        "momentum": n,  # [Nms] M dq after the sample
        "q_now": n,  # [rad] positions of the last sample
        "duration": 1,  # [s] of the block
        "count": 1,  # of its samples
        "y": m + n,  # measurements: deflections [rad], then torques [Nm]
        "R": m + n,  # their variances
        "q_mean": n,  # [rad]
        "presliding_mean": n,  # friction states
        "motion_noise": m + n,  # what motion adds to the variances of offsets [rad^2], friction disturbances [Nm^2]
        "friction_change": n,  # [Nm^2] what that of the disturbances adds to an external torque if friction is kept
        "friction_moves": n,  # share of their rate at which the friction disturbances change
        "push_covariance": (n, n),  # [Nm^2/s] random walk of the torque of an unknown contact
        "push_regression": (3, n),  # [1/m] regression of its force on its torque
        "push_share": 1,  # share of the TCP's way over which it holds the TCP
        "push_held": 1,  # zero where it pushes no more
        "tcp_jacobian": (3, n),  # of the TCP's position, base axes
        "tcp_pose": 12,  # position [m] and rotation of the TCP, column by column
        "tcp_before": 12,  # the same in the last block
        "steady_pose": 12,  # as tcp_pose, position behind ``slip_length``, axes behind the encoders' noise
        "steady_before": 12,
        "slip_direction": 3,  # in which the TCP went over the last ``slip_length``, base axes, at most of length one
        "slid": 3,  # [m] its way beyond that
        "within_noise": contacts,  # [m] motion of the contact points along their normals that may be encoder noise
        "normal_way": contacts,  # [m] their way along the normals in the last second, without what trembles
        "turn": contacts,  # [rad] rotation of the TCP against the normals beyond that in the last second
        "load": n,  # [Nm] external torque of a payload
        "friction_drift": n,  # [Nm^2] variance of an unknown contact's torque by changed friction and by its lag
        "variance_factor": m + n,  # of the channels in the published covariance
        "noise_share": m + n,  # share of its variance by which an innovation is evidence
        "nis": 1,  # normalised innovation squared of the most probable filter
    }


def _of_settings(layout: StateLayout) -> dict[str, Shape]:
    """Signals that settings become, as :func:`~contact_estimation.filters.imm.settings.run_time_inputs` makes them."""
    n, contacts = layout.n, len(layout.contacts)
    per_joint = "deadband presliding_length presliding_spread torque_scale viscous viscous_std asymmetry asymmetry_std"
    per_joint += " torque_variance coulomb_prior model_error"
    per_contact = "touch depth_error law_variance depth_variance normal_variance geometry_from_torque"
    scalars = "block gate max_stiffness_step stiffness_way slip_length position_deadband hysteresis elastic_variance"
    scalars += " usual_noise velocity_noise noise_time deadband_noise velocity_deadband transmission_error"
    scalars += " velocity_delay max_noise_ratio load_blocks friction_error stop_error disturbance_speed link_share"
    scalars += " push_speed relative_variance unit_stiffness birth_time birth_time_first"
    scalars += " published_probability least_probability"
    return {
        "theta": layout.theta_size,  # parameters of all contacts
        "basis": 9 * contacts,  # normal and tangents of each contact, column by column
        "prior": layout.size,  # mean of what was not measured
        "prior_variance": layout.size,
        "point_from_torque": contacts,  # one where the torque shows a contact's point without joint friction
        "joint_stiffness": layout.m,  # [Nm/rad]
        "push_variance": 6,  # [N^2/s, Nm^2/s] of an unknown contact at the TCP
        "wrench_variance": 6,  # [N^2, Nm^2] prior of its published wrench
        **dict.fromkeys(per_joint.split(), n),
        **dict.fromkeys(per_contact.split(), contacts),
        **dict.fromkeys(scalars.split(), 1),
    }
