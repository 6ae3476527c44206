"""Observability along a recording, at the states an EKF estimates."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence

import numpy as np

from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics.observability import Observability, ParameterInformation
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.process_noise import torque_intensity
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.states import filtered_states
from contact_estimation.io.recording import Recording


def information_along(
    stream: SampleStream, recording: Recording, estimate: Sequence[str] | None = None
) -> Observability:
    """Run an EKF over a recording and add up what the motion shows of the contacts' parameters.

    The parameters are held at the filter's last estimate: derivatives taken at parameters that move along with the
    filter would add up information that no single set of parameters has.

    Args:
        stream: of an EKF.
        recording: the motion.
        estimate: parameters to ask about, for every contact; default those that the filter estimates.

    Raises:
        RecordingError: a sample cannot be used.
    """
    observer = typing.cast(Ekf, stream.observer)
    arm, noise = stream.arm, observer.settings.process_noise
    states = filtered_states(stream, recording)
    found = observer.estimate().contacts
    contacts = ParallelContacts(
        arm,
        [
            dataclasses.replace(
                c,
                stiffness=s.stiffness.tolist(),
                rest=s.rest.tolist(),
                point=s.point_tcp.tolist(),
                law_parameters=s.law_parameters,
                estimate=c.estimate if estimate is None else list(estimate),
            )
            for c, s in zip(observer.settings.contacts, found)
        ],
    )
    phi, std = contacts.initial(states.q[0])
    information = ParameterInformation(arm, contacts, noise.velocity, torque_intensity(arm, noise))
    for q, dq, tau in zip(states.q, states.dq, states.tau):
        information.update(states.h, np.concatenate([q, dq, phi[contacts.estimated]]), phi, tau)
    return information.report(std)
