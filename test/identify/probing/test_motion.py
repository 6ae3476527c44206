"""White-noise-jerk motion."""

import numpy as np
from scipy.linalg import expm

from contact_estimation.identify.probing.motion import transition


def test_transition_and_noise_equal_van_loan():
    dt, jerk = 0.04, 3.0
    a = np.diag([1.0, 1.0], 1)
    noise = np.zeros((3, 3))
    noise[2, 2] = jerk**2
    block = expm(dt * np.block([[-a, noise], [np.zeros((3, 3)), a.T]]))
    f, q = transition(dt, (jerk,))
    assert np.allclose(f, block[3:, 3:].T)
    assert np.allclose(q, f @ block[:3, 3:], rtol=1e-9, atol=1e-18)


def test_axes_do_not_mix():
    f, q = transition(0.04, (1.0, 2.0, 5.0))
    assert f.shape == q.shape == (9, 9)
    assert q[0, 1] == 0.0 and q[8, 8] / q[6, 6] == 25.0
