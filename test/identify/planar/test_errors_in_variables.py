"""Eq. 18 with noisy states: unattenuated, calibrated, and with a verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import chi2

from contact_estimation.cli import main
from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.planar.errors_in_variables import StateNoise
from contact_estimation.identify.planar.recorded_window import identify_recorded_window
from contact_estimation.identify.planar.shapes import square
from contact_estimation.identify.planar.stepping import FallingBody, simulate

MASS, RATIO, SIDE, FRICTION, H = 2.0, 60.0, 0.3, 0.4, 0.005
NOISE = StateNoise(np.full(3, 2e-4), np.full(3, 0.02))


def _force(k: int) -> np.ndarray:
    return np.array([6.0 * np.sin(0.11 * k), 3.0 * np.cos(0.07 * k), 0.4 * np.sin(0.05 * k)])


def _tumble(seed: int, pushed: bool):
    """Times, noisy states and forces of a square that falls, bounces and slides."""
    body = FallingBody(square(SIDE), RATIO, MASS, FRICTION, 0.4)
    rng = np.random.default_rng(seed)
    start = [0.0, 0.35, rng.uniform(0.2, 1.2)], [rng.uniform(-1.0, 1.0), 0.0, rng.uniform(-4.0, 4.0)]
    run = simulate(body, *start, H, 120, lambda k, q, v: _force(k) if pushed else np.zeros(3))
    q, v = (a + std * rng.standard_normal(a.shape) for a, std in ((run.q, NOISE.position), (run.v, NOISE.velocity)))
    return run.t, q, v, np.array([_force(k) for k in range(len(run.t) - 1)])


def test_the_ratio_is_unattenuated_and_its_interval_covers():
    z = []
    for seed in range(5):
        t, q, v, _ = _tumble(seed, pushed=False)
        found = identify_recorded_window(square(SIDE), FRICTION, t, q, v, NOISE)
        assert found.status == "local" and found.verdict.verdict == "good", found.verdict
        low, high = found.intervals["m_over_i"]
        z.append((found.values["m_over_i"] - RATIO) / ((high - low) / 3.92))
        assert found.values["m_over_i"] == pytest.approx(RATIO, rel=0.02)
    low, high = chi2.ppf([0.005, 0.995], len(z))
    assert low < np.sum(np.square(z)) < high


def test_the_command_separates_mass_and_inertia_with_a_verdict_and_intervals(tmp_path, capsys):
    t, q, v, force = _tumble(1, pushed=True)
    path = str(tmp_path / "w.npz")
    np.savez(path, t=t, q=q, v=v, force=force, q_std=NOISE.position, v_std=NOISE.velocity)
    words = ["identify", "planar", "--window", path, "--shape", f"square:{SIDE}", "--friction", str(FRICTION), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mass"] == pytest.approx(MASS, rel=0.05)
    assert found["inertia"] == pytest.approx(MASS / RATIO, rel=0.05)
    assert found["verdict"] == "good" and found["interval_total"]["mass"][0] < found["mass"]
    part = slice(0, 80)
    np.savez(path, t=t[part], q=q[part], v=2.0 * v[part], q_std=NOISE.position, v_std=NOISE.velocity)
    assert main(words) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "failed" and found["m_over_i"] is None and found["interval"]["m_over_i"] == [None, None]
    assert main(words[:-1]) == 3
    assert capsys.readouterr().out.startswith("no result\nverdict: failed")


def test_uneven_samples_are_sent_to_drop():
    t, q, v, _ = _tumble(0, pushed=False)
    with pytest.raises(RecordingError, match="use --drop"):
        identify_recorded_window(square(SIDE), FRICTION, t + 1e-3 * np.sin(9.0 * t), q, v, NOISE)


def test_a_body_that_never_touches_is_refused(tmp_path, capsys):
    t, q, v, _ = _tumble(0, pushed=False)
    path = str(tmp_path / "w.npz")
    np.savez(path, t=t, q=q * [1e3, 1e3, 1.0], v=v)
    words = ["identify", "planar", "--window", path, "--shape", f"square:{SIDE}", "--friction", str(FRICTION)]
    assert main(words) == 2
    assert "never touches the ground y = 0" in capsys.readouterr().err


def test_states_without_noise_are_refused(tmp_path, capsys):
    t, q, v, _ = _tumble(0, pushed=False)
    path = str(tmp_path / "w.npz")
    np.savez(path, t=t, q=q, v=v)
    words = ["identify", "planar", "--window", path, "--shape", f"square:{SIDE}", "--friction", str(FRICTION)]
    assert main([*words, "--noise", "0"]) == 2
    assert "expected numbers above 0" in capsys.readouterr().err
