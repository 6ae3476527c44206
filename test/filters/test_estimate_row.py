"""Estimates as rows of numbers: the same numbers as the objects have, in one order."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.filters.estimate_row import arm_parts, first_contact, row_of, with_numbers
from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm


def estimate_of(seed: int) -> Estimate:
    """Random numbers under the same words."""
    rng = np.random.default_rng(seed)
    place = ContactPlace({"a": rng.uniform(), "b": rng.uniform()}, *_placed(rng), region=rng.normal(size=(4, 3)))
    known = ContactState(
        "known", 0.9, *rng.normal(size=(4, 3)), rng.normal(size=(9, 9)), ("k",), rng.uniform(size=1), (), "mindlin"
    )
    known = dataclasses.replace(known, law_parameters={"share": rng.uniform()}, link="tool")
    unknown = ContactState("unknown", 0.8, *rng.normal(size=(4, 3)), rng.normal(size=(9, 9)), place=place)
    arm = (*rng.normal(size=(3, 6)), *rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    return Estimate(
        1.0,
        *arm,
        (known, unknown),
        rng.uniform(),
        6,
        "closed",
        {"free": rng.uniform(), "closed": 0.75},
        unexplained=rng.normal(size=6),
    )


def _placed(rng) -> tuple:
    return rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=3)


def leaves(record, name="") -> dict[str, np.ndarray]:
    """Every number below an object by its path, whatever the fields are called."""
    if isinstance(record, dict):
        return {k: v for key, value in record.items() for k, v in leaves(value, f"{name}.{key}").items()}
    if isinstance(record, (tuple, list)):
        return {k: v for i, value in enumerate(record) for k, v in leaves(value, f"{name}.{i}").items()}
    if hasattr(record, "__dict__"):
        derived = {"normal": record.normal} if hasattr(record, "normal") else {}
        return leaves({**vars(record), **derived}, name)
    return {name: np.asarray(record)} if isinstance(record, (float, np.ndarray)) else {}


def test_a_row_has_every_number_of_an_estimate():
    """A field that somebody adds and a row does not carry would be sent with old numbers."""
    one, other = estimate_of(1), estimate_of(2)
    got = leaves(with_numbers(one, row_of(other).numbers))
    expected = leaves(other)
    assert got.keys() == expected.keys() and row_of(one).words == row_of(other).words
    for name, value in expected.items():
        if name != ".t":
            np.testing.assert_array_equal(got[name], value, name)


def test_the_first_contact_stands_where_it_is_said():
    estimate = estimate_of(3)
    numbers, where = row_of(estimate).numbers, first_contact(estimate)
    np.testing.assert_array_equal(numbers[arm_parts(6)["force_tcp"]], estimate.force_tcp)
    np.testing.assert_array_equal(numbers[where["stiffness"]], estimate.contacts[0].stiffness)
    np.testing.assert_array_equal(numbers[where["point_base"]], estimate.contacts[0].point_base)


@pytest.mark.parametrize("observer", ["contact_imm", "momentum_calibrated"])
def test_a_stream_tells_the_same_as_row_and_as_object(observer):
    """Pushed up from rest, until several modes have a share."""
    arm = load_arm("ur16e")
    stream = open_stream("ur16e", observer, "joint_torque")
    q, still, rng = 0.6 * arm.lower + 0.4 * arm.upper, np.zeros(6), np.random.default_rng(0)
    torque = arm.gravity(q)
    for k in range(200):
        push = 0.2 * max(k - 100, 0)
        stream.push_fast(2_000_000 * (k + 1), q, still, torque + rng.normal(0.0, 0.2, 6) - push * np.eye(6)[1])
        row, estimate = stream.row(), stream.estimate()
        np.testing.assert_allclose(row.numbers, row_of(estimate).numbers, rtol=1e-14)
        assert (row.valid, row.reason) == (estimate.valid, estimate.reason)


def test_words_change_with_the_estimate_not_with_its_numbers():
    stream = open_stream("ur16e", "contact_imm", "joint_torque")
    assert not stream.row().valid and "no sample" in stream.row().reason
    keys = {}
    arm = load_arm("ur16e")
    q, still = 0.6 * arm.lower + 0.4 * arm.upper, np.zeros(6)
    for k in range(60):
        stream.push_fast(2_000_000 * (k + 1), q, still, arm.gravity(q))
        words = row_of(stream.estimate()).words
        assert keys.setdefault(stream.row().words, words) == words
    assert len(keys) < 5
