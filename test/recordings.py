"""A small recording with everything in it, for the tests of readers and writers."""

import numpy as np

from contact_estimation.io.recording import Recording

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")


def small_recording(count: int = 300, start_ns: int = 1_700_000_000_123_456_789, seed: int = 0, **changes) -> Recording:
    """500 Hz, three joints, wrench with zero offset, all truths, all numbers random."""
    rng = np.random.default_rng(seed)
    n = len(JOINTS)
    values = dict(
        stamps_ns=start_ns + 2_000_000 * np.arange(count), joint_names=JOINTS, q=rng.normal(size=(count, n)),
        dq=rng.normal(size=(count, n)), tau=rng.normal(size=(count, n)), source="small recording",
        wrench_tcp=rng.normal(size=(count, 6)), wrench_zero=rng.normal(size=6),
        truth={"wrench_tcp": rng.normal(size=(count, 6)), "stiffness": rng.normal(size=(count, 3)),
               "rest": rng.normal(size=(count, 3)), "contact_point": rng.normal(size=(count, 3)),
               "tau_ext": rng.normal(size=(count, n))})
    return Recording(**(values | changes))


def assert_equal(a: Recording, b: Recording) -> None:
    """Every array of the two recordings is the same to the last bit."""
    assert a.joint_names == b.joint_names
    for name in ("stamps_ns", "q", "dq", "tau", "wrench_tcp", "wrench_zero"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.truth.keys() == b.truth.keys()
    for name, value in a.truth.items():
        np.testing.assert_array_equal(value, b.truth[name], err_msg=name)
