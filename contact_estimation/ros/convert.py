"""Messages <-> numpy: pure functions, no node, no clock. Stamps are int64 nanoseconds everywhere outside messages."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped, Vector3, Vector3Stamped, Wrench, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

import contact_estimation.msg as messages
from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate
from contact_estimation.msg import ContactEstimate, ContactPrimitive


def stamp_ns(stamp: Time) -> int:
    """Nanoseconds of a message's stamp."""
    return int(stamp.sec * 1_000_000_000 + stamp.nanosec)


def header(ns: int, frame_id: str) -> Header:
    """Header with the stamp ``ns`` [ns]."""
    seconds, nanoseconds = divmod(ns, 1_000_000_000)
    return Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=frame_id)


def joint_state(
    head: Header,
    names: Sequence[str],
    position: npt.ArrayLike = (),
    velocity: npt.ArrayLike = (),
    effort: npt.ArrayLike = (),
) -> JointState:
    """JointState of arrays (n,) in SI; what is not given stays empty."""
    return JointState(
        header=head, name=list(names), position=_array(position), velocity=_array(velocity), effort=_array(effort)
    )


def wrench_stamped(head: Header, force: npt.ArrayLike, torque: npt.ArrayLike) -> WrenchStamped:
    """WrenchStamped of force (3,) [N] and torque (3,) [Nm]."""
    return WrenchStamped(header=head, wrench=_wrench(force, torque))


def vector_stamped(head: Header, vector: npt.ArrayLike) -> Vector3Stamped:
    """Vector3Stamped of (3,)."""
    return Vector3Stamped(header=head, vector=_vector(vector))


def point_stamped(head: Header, point: npt.ArrayLike) -> PointStamped:
    """PointStamped of (3,) [m]."""
    return PointStamped(header=head, point=_point(point))


def contact_estimate(
    estimate: Estimate, head: Header, tcp_frame: str, joint_names: Sequence[str], observer: str, max_age: float = 0.0
) -> ContactEstimate:
    """Write the whole estimate as one message.

    Args:
        estimate: what is written.
        head: stamp of its sample, and the base frame.
        tcp_frame: name of the TCP frame.
        joint_names: of the arm.
        observer: name of the observer.
        max_age: [s] age from which on it must not be used; 0: never.
    """
    return ContactEstimate(
        header=head,
        observer=observer,
        valid=bool(estimate.valid),
        reason=estimate.reason,
        max_age=max_age,
        force_base=_vector(estimate.force_base),
        tcp_frame=tcp_frame,
        wrench_tcp=_wrench(estimate.force_tcp, estimate.torque_tcp),
        force_covariance=np.ascontiguousarray(estimate.force_covariance, float).ravel(),
        joint_names=list(joint_names),
        position=_array(estimate.q),
        velocity=_array(estimate.dq),
        external_torque=_array(estimate.tau_ext),
        contacts=[_primitive(contact) for contact in estimate.contacts],
        mode=estimate.mode,
        modes=list(estimate.modes),
        beliefs=array("d", estimate.modes.values()),
        nis=float(estimate.nis),
        nis_dof=int(estimate.nis_dof),
        unexplained=_array(estimate.unexplained),
        mismatch=estimate.mismatch,
    )


def from_contact_estimate(message: ContactEstimate) -> Estimate:
    """Read the estimate inside a message; ``t`` is its stamp in seconds."""
    return Estimate(
        t=stamp_ns(message.header.stamp) * 1e-9,
        q=np.array(message.position),
        dq=np.array(message.velocity),
        tau_ext=np.array(message.external_torque),
        force_base=xyz(message.force_base),
        force_tcp=xyz(message.wrench_tcp.force),
        torque_tcp=xyz(message.wrench_tcp.torque),
        force_covariance=np.array(message.force_covariance).reshape(3, 3),
        contacts=tuple(_contact_state(primitive) for primitive in message.contacts),
        nis=message.nis,
        nis_dof=message.nis_dof,
        mode=message.mode,
        modes=dict(zip(message.modes, message.beliefs)),
        valid=message.valid,
        reason=message.reason,
        unexplained=np.array(message.unexplained),
        mismatch=message.mismatch,
    )


def xyz(message: Vector3 | Point) -> np.ndarray:
    """(3,) of a Vector3 or Point."""
    return np.array((message.x, message.y, message.z))


def _primitive(contact: ContactState) -> ContactPrimitive:
    return ContactPrimitive(
        name=contact.name,
        probability=float(contact.probability),
        stiffness=_vector(contact.stiffness),
        rest=_point(contact.rest),
        point_tcp=_point(contact.point_tcp),
        point_base=_point(contact.point_base),
        covariance=np.ascontiguousarray(contact.covariance, float).ravel(),
        parameters=list(contact.parameters),
        remaining=_array(contact.remaining),
        unseen=list(contact.unseen),
        law=contact.law,
        law_parameters=list(contact.law_parameters),
        law_values=_array(list(contact.law_parameters.values())),
        link=contact.link,
        normal=_vector(contact.normal),
        place=[] if contact.place is None else [_place(contact.place)],
    )


def _place(place: ContactPlace) -> messages.ContactPlace:
    return messages.ContactPlace(
        links=list(place.links),
        link_probabilities=_array(list(place.links.values())),
        point=_point(place.point),
        covariance=np.ascontiguousarray(place.covariance, float).ravel(),
        force=_vector(place.force),
        region=[_point(point) for point in place.region],
        reason=place.reason,
    )


def _contact_place(message: messages.ContactPlace) -> ContactPlace:
    return ContactPlace(
        links=dict(zip(message.links, message.link_probabilities)),
        point=xyz(message.point),
        covariance=np.array(message.covariance).reshape(3, 3),
        force=xyz(message.force),
        region=np.array([xyz(point) for point in message.region]).reshape(-1, 3),
        reason=message.reason,
    )


def _contact_state(message: ContactPrimitive) -> ContactState:
    return ContactState(
        name=message.name,
        probability=message.probability,
        stiffness=xyz(message.stiffness),
        rest=xyz(message.rest),
        point_tcp=xyz(message.point_tcp),
        point_base=xyz(message.point_base),
        covariance=np.array(message.covariance).reshape(9, 9),
        parameters=tuple(message.parameters),
        remaining=np.array(message.remaining),
        unseen=tuple(message.unseen),
        law=message.law,
        law_parameters=dict(zip(message.law_parameters, message.law_values)),
        link=message.link,
        place=_contact_place(message.place[0]) if message.place else None,
    )


def _array(values: npt.ArrayLike) -> array[float]:
    # array("d") is what the generated setters take without looking at every entry; bytes is the fastest way into it.
    return array("d", np.ascontiguousarray(values, float).tobytes())


def _vector(values: npt.ArrayLike) -> Vector3:
    x, y, z = np.asarray(values, float).tolist()
    return Vector3(x=x, y=y, z=z)


def _point(values: npt.ArrayLike) -> Point:
    x, y, z = np.asarray(values, float).tolist()
    return Point(x=x, y=y, z=z)


def _wrench(force: npt.ArrayLike, torque: npt.ArrayLike) -> Wrench:
    return Wrench(force=_vector(force), torque=_vector(torque))
