"""Impact laws: against impulses that grow in small steps, against the general LCP, and planted truth."""

import numpy as np
import pytest

from contact_estimation.identify.planar.impact_laws import LAWS, ContactSpace, compare_laws
from contact_estimation.identify.planar.lcp import solve_lcp

E, MU = 0.6, 0.3
ROUTH = ["newton", "poisson", "energetic"]


def bodies(count, seed=0):
    """Impacts of bodies with levers r_x, r_y and m/I = k: a = 1 + k r r^T, closing at 1 to 3 m/s."""
    rng = np.random.default_rng(seed)
    rx, ry, k = rng.uniform(-0.03, 0.03, count), rng.uniform(0.02, 0.05, count), rng.uniform(300, 1500, count)
    along, normal = rng.uniform(-1.5, 1.5, count), -rng.uniform(1, 3, count)
    return ContactSpace(along, normal, 1 + k * ry**2, 1 + k * rx**2, k * rx * ry)


def in_small_steps(law, space, e=E, mu=MU, step=2e-4):
    """The normal impulse grows by small steps; friction sticks where it can; written without the path's two parts."""
    ut, un, tt, nn, nt = (part.copy() for part in space)
    start, found, on = un.copy(), np.zeros((len(un), 2)), np.arange(len(un))  # the impacts that have not ended
    pt, pn, work, stored = (np.zeros(len(un)) for _ in range(4))
    compressed, until = np.zeros(len(un), bool), np.full(len(un), np.inf)
    while len(on):
        want = -(ut + nt * step) / tt  # what would end the slip within this step
        dt = np.clip(want, -mu * step, mu * step)
        work += (un + 0.5 * (nt * dt + nn * step)) * step
        ut, un, pt, pn = ut + tt * dt + nt * step, un + nt * dt + nn * step, pt + dt, pn + step
        turns = ~compressed & (un >= 0)
        compressed |= turns
        stored[turns], until[turns] = work[turns], (1 + e) * pn[turns]
        ends = {"newton": un >= -e * start, "poisson": pn >= until, "energetic": work - stored >= -(e**2) * stored}
        done = compressed & ends[law]
        if done.any():
            found[on[done]] = np.stack([pt, pn], axis=1)[done]
            state = (ut, un, tt, nn, nt, start, pt, pn, work, stored, compressed, until, on)
            ut, un, tt, nn, nt, start, pt, pn, work, stored, compressed, until, on = (part[~done] for part in state)
    return found


@pytest.mark.parametrize("law", ROUTH)
def test_a_law_ends_where_impulses_in_small_steps_do(law):
    space = bodies(60)
    assert LAWS[law](space, E, MU) == pytest.approx(in_small_steps(law, space), abs=3e-3)


@pytest.mark.parametrize("poisson", [False, True])
def test_complementarity_is_that_of_the_general_lcp(poisson):
    space = bodies(60, seed=1)
    expected = []
    for ut, un, tt, nn, nt in zip(*space):
        rows = np.array([[nn, nt, -nt], [nt, tt, -tt], [-nt, -tt, tt]])
        matrix = np.block([[rows, np.array([[0], [1], [1]])], [np.array([[MU, -1, -1, 0]])]])
        e = 0.0 if poisson else E
        z = solve_lcp(matrix, np.array([(1 + e) * un, ut, -ut, 0.0])).z
        if poisson:
            stored = E * z[0]
            ut2, un2 = ut + tt * (z[1] - z[2]) + nt * (z[0] + stored), un + nt * (z[1] - z[2]) + nn * (z[0] + stored)
            more = solve_lcp(matrix, np.array([un2, ut2, -ut2, MU * stored])).z  # c_n = stored + what keeps it apart
            z = z + more + [stored, 0, 0, 0]
        expected.append((z[1] - z[2], z[0]))
    law = "complementary_poisson" if poisson else "complementary_newton"
    assert LAWS[law](space, E, MU) == pytest.approx(np.array(expected), abs=1e-9)


def test_laws_agree_where_nothing_couples():
    space = bodies(20)._replace(a_nt=np.zeros(20))
    for predict in LAWS.values():
        assert predict(space, E, MU)[:, 1] == pytest.approx((1 + E) * -space.normal / space.a_nn)


def test_only_the_energetic_law_never_gains_energy():
    """Newton's may: slip that reverses feeds the normal velocity (Stronge 1990)."""
    space, e, mu = bodies(2000, seed=2), 1.0, 0.8
    a = np.stack([[space.a_tt, space.a_nt], [space.a_nt, space.a_nn]]).transpose(2, 0, 1)
    before = np.stack([space.along, space.normal], axis=1)
    gains = {}
    for name in ROUTH:
        p = LAWS[name](space, e, mu)
        gains[name] = np.einsum("ni,ni->n", p, before) + 0.5 * np.einsum("ni,nij,nj->n", p, a, p)
    assert gains["energetic"].max() < 1e-9 < gains["newton"].max()


@pytest.mark.parametrize("law", ROUTH)
def test_the_law_that_made_the_impacts_comes_first_with_its_numbers(law):
    space = bodies(300, seed=3)
    noise = 0.01 * np.random.default_rng(4).standard_normal((300, 2))
    best, *_, worst = compare_laws(space, in_small_steps(law, space) + noise)
    assert best.law == law and worst.error_pct > 1.5 * best.error_pct
    assert (best.restitution, best.friction) == pytest.approx((E, MU), abs=0.02)
