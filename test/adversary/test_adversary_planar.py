"""The drops of the adversarial pack obey mechanics, whatever the estimators make of them."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.adversary import planar

SQUARE = 0.5 * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
BODY = planar.Body(SQUARE, False, ratio=6.0, friction=0.4)
START = [0.0, 1.1, 0.3], [0.5, -1.0, 2.0]


def energy(body, t, q, v):
    """Kinetic, gravitational and elastic energy per mass (n,)."""
    elastic = [sum(body.potential(c[0]) for c in planar.contact_forces(body, *state)) for state in zip(t, q, v)]
    return 0.5 * (v[:, 0] ** 2 + v[:, 1] ** 2 + v[:, 2] ** 2 / body.ratio) + planar.GRAVITY * q[:, 1] + elastic


def test_smooth_elastic_bounces_keep_their_energy():
    body = replace(BODY, friction=0.0, dissipation=0.0)
    found = energy(body, *planar.drop(body, *START, 0.8))
    assert np.ptp(found) < 2e-3 * found[0]


def test_friction_and_dissipation_only_take_energy():
    found = energy(BODY, *planar.drop(BODY, *START, 0.8))
    assert found[-1] < 0.95 * found[0]
    assert np.diff(found).max() < 1e-4 * found[0]


def test_contacts_push_obey_coulomb_and_oppose_slip():
    seen = [c for state in zip(*planar.drop(BODY, *START, 0.8)) for c in planar.contact_forces(BODY, *state)]
    depth, normal, tangent, _, slip = np.array(seen).T
    assert len(seen) > 1000 and depth.min() > 0.0
    assert normal.min() >= 0.0
    assert np.all(np.abs(tangent) <= BODY.friction * normal + 1e-12)
    assert np.all(tangent * slip <= 0.0)


def test_no_corner_goes_deeper_than_three_millimetres():
    _, q, _ = planar.drop(BODY, *START, 0.8)
    assert min(y + min(ry for _, ry in BODY.points(theta)) for _, y, theta in q) > -3e-3


@pytest.mark.parametrize("body", [BODY, planar.Body(np.array([[2.0, 1.0]]), True, 0.8, 0.4)], ids=["square", "ellipse"])
def test_an_impact_turns_the_body_by_the_moment_of_its_impulse(body):
    t, q, v = planar.drop(body, [0.0, 0.8 * body.radius + 0.4, 0.35], [0.3, -1.0, 0.5], 0.8)
    first = int(np.argmax(np.diff(t) < 1.01 * planar.CONTACT_STEP))
    last = first + int(np.argmax(np.diff(t[first:]) > 1.01 * planar.CONTACT_STEP))
    change, (rx, ry) = v[last] - v[first], min(body.points(q[first, 2]), key=lambda r: r[1])
    assert change[1] > 1.0
    assert change[2] == pytest.approx(body.ratio * (rx * change[1] - ry * change[0]), rel=0.02, abs=0.02)


def test_a_wall_turns_back_what_runs_into_it():
    body = replace(BODY, friction=0.0, wall=(1.0, 1.0, 0.0))
    _, q, v = planar.drop(body, [0.0, 3.0, 0.0], [3.0, 0.0, 0.0], 0.4)
    assert v[-1, 0] < -1.0
    assert max(x + max(rx for rx, _ in body.points(angle, 1.0, 0.0)) for x, _, angle in q) < 1.01


def test_samples_are_states_at_their_instant():
    t, q, v = planar.sample(*planar.drop(BODY, [0.0, 3.0, 0.0], [1.0, 0.0, 2.0], 0.3), 0.01)
    assert q[:, 1] == pytest.approx(3.0 - 0.5 * planar.GRAVITY * t**2, abs=1e-5)
    assert v[:, 1] == pytest.approx(-planar.GRAVITY * t, abs=1e-5)
    assert q[:, 2] == pytest.approx(2.0 * t, abs=1e-9)


def test_the_same_seed_draws_the_same_body_with_and_without_a_fault(tmp_path):
    cases = [planar.write(tmp_path, fault, np.random.default_rng(5)) for fault in ("clean", *planar.FAULTS)]
    assert len({case.truth["m_over_i"] for case in cases}) == 1


@pytest.mark.parametrize("fault", [f for f in planar.FAULTS if f not in ("friction", "side")])
def test_every_fault_changes_the_recording(tmp_path, fault):
    seen = []
    for planted in ("clean", fault):
        planar.write(tmp_path, planted, np.random.default_rng(4))
        with np.load(tmp_path / "drop.npz") as archive:
            seen.append(archive["q"].copy() if "v" not in archive else np.hstack([archive["q"], archive["v"]]))
    assert seen[0].shape != seen[1].shape or np.abs(seen[0] - seen[1]).max() > 1e-3
