"""The built messages mirror the library's estimate."""

import dataclasses

import numpy as np
import pytest
from contact_estimation.msg import ContactEstimate, ContactPrimitive
from rclpy.serialization import deserialize_message, serialize_message

from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate
from contact_estimation.ros import convert
from contact_estimation.ros.bag_types import typestore

#: Field of the dataclass -> field of the message that holds it.
ESTIMATE = {
    "t": "header",
    "q": "position",
    "dq": "velocity",
    "tau_ext": "external_torque",
    "force_base": "force_base",
    "force_tcp": "wrench_tcp",
    "torque_tcp": "wrench_tcp",
    "force_covariance": "force_covariance",
    "contacts": "contacts",
    "nis": "nis",
    "nis_dof": "nis_dof",
    "mode": "mode",
    "modes": "modes",
    "valid": "valid",
    "reason": "reason",
    "unexplained": "unexplained",
    "mismatch": "mismatch",
}
JOINTS = [f"joint_{i}" for i in range(6)]


def random_estimate(seed: int = 0, contacts: int = 2) -> Estimate:
    rng = np.random.default_rng(seed)

    def contact(i):
        return ContactState(
            f"contact_{i}",
            rng.uniform(),
            *rng.normal(size=(4, 3)),
            rng.normal(size=(9, 9)),
            ("stiffness", "rest"),
            rng.uniform(size=2),
            ("rest",),
            "mindlin",
            {"share": rng.uniform()},
            f"link_{i}",
            place(i) if i % 2 else None,
        )

    def place(i):
        links, numbers = {f"link_{k}": rng.uniform() for k in range(i)}, rng.normal(size=(2, 3))
        return ContactPlace(links, numbers[0], rng.normal(size=(3, 3)), numbers[1], rng.normal(size=(i, 3)), "a reason")

    return Estimate(
        1.5,
        *rng.normal(size=(3, 6)),
        *rng.normal(size=(3, 3)),
        rng.normal(size=(3, 3)),
        tuple(contact(i) for i in range(contacts)),
        rng.uniform(),
        6,
        "closed",
        {"free": 0.25, "closed": 0.75},
        unexplained=rng.normal(size=6),
        mismatch="the torque is not that of the model",
    )


def assert_same(a: Estimate, b: Estimate) -> None:
    for field in dataclasses.fields(Estimate):
        if field.name == "contacts":
            assert len(a.contacts) == len(b.contacts)
            for one, other in zip(a.contacts, b.contacts):
                for inner in dataclasses.fields(ContactState):
                    if inner.name == "place":
                        assert_same_place(one.place, other.place)
                        continue
                    np.testing.assert_array_equal(getattr(one, inner.name), getattr(other, inner.name), inner.name)
        elif field.name in ("mode", "modes", "valid", "reason", "mismatch"):
            assert getattr(a, field.name) == getattr(b, field.name)
        else:
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), field.name)


def assert_same_place(a: ContactPlace | None, b: ContactPlace | None) -> None:
    assert (a is None) == (b is None)
    for field in dataclasses.fields(ContactPlace) if a is not None else ():
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), field.name)


def message_of(estimate: Estimate) -> ContactEstimate:
    return convert.contact_estimate(estimate, convert.header(1_500_000_000, "base_link"), "tool0", JOINTS, "ekf")


def test_every_field_has_its_place():
    assert set(ESTIMATE) == {field.name for field in dataclasses.fields(Estimate)}
    assert set(ESTIMATE.values()) <= set(ContactEstimate.get_fields_and_field_types())
    fields = {field.name for field in dataclasses.fields(ContactState)}
    assert set(ContactPrimitive.get_fields_and_field_types()) == fields | {"law_values", "normal"}


@pytest.mark.parametrize("contacts", [0, 1, 3])
def test_estimate_survives_the_wire(contacts):
    estimate = random_estimate(contacts, contacts)
    raw = serialize_message(message_of(estimate))
    assert_same(convert.from_contact_estimate(deserialize_message(raw, ContactEstimate)), estimate)


def test_a_contact_carries_its_normal():
    estimate = random_estimate(contacts=3)
    for contact, primitive in zip(estimate.contacts, message_of(estimate).contacts):
        np.testing.assert_array_equal(convert.xyz(primitive.normal), contact.normal)
    assert any(np.isfinite(contact.normal).all() for contact in estimate.contacts)


def test_invalid_estimate_carries_its_reason():
    nothing = np.full(6, np.nan)
    estimate = Estimate(
        0.0,
        nothing,
        nothing,
        nothing,
        nothing[:3],
        nothing[:3],
        nothing[:3],
        np.full((3, 3), np.nan),
        valid=False,
        reason="a sample has values that are not finite",
    )
    message = message_of(estimate)
    assert not message.valid and message.reason == estimate.reason and np.isnan(message.wrench_tcp.force.x)


def test_rosbags_reads_what_rclpy_wrote():
    """The definitions that go into bags describe the same bytes."""
    estimate = random_estimate(4)
    read = typestore().deserialize_cdr(
        serialize_message(message_of(estimate)), "contact_estimation/msg/ContactEstimate"
    )
    assert_same(convert.from_contact_estimate(read), estimate)
