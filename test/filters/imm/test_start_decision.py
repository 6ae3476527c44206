"""What decides whether a known contact has been closed since the start."""

import numpy as np
import pytest

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.start_decision import StartDecision

SETTINGS = ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])])


@pytest.fixture
def chain():
    return ModeChain(SETTINGS, 1)


def probabilities(chain, free, contact, unknown):
    """Of the filters, from those of free space, of the known contact and of an unknown one."""
    masks = chain.free, chain.touched, chain.felt > 0
    return sum(p * mask / mask.sum() for p, mask in zip((free, contact, unknown), masks))


def innovations(chain, free, contact):
    """(M, 2) of which those of free space and of the known contact have these sizes."""
    return np.outer(np.where(chain.free, free, contact), [0.6, 0.8])


def course(chain, blocks, fit, rests=False):
    """Probabilities (blocks, 3) of free space, known and unknown contact that a decision makes of ``blocks``."""
    decision, found = StartDecision(chain, SETTINGS), []
    for block in blocks:
        p = probabilities(chain, *block)
        decision.keep(p, innovations(chain, *fit), rests)
        assert p.sum() == pytest.approx(1.0)
        found.append([p[mask].sum() for mask in (chain.free, chain.touched, chain.felt > 0)])
    return np.array(found)


@pytest.mark.parametrize("contact", [0.2, 0.5, 0.9])
def test_free_space_gains_nothing_by_less_noise(chain, contact):
    blocks = [(0.98 - contact, contact, 0.02), (0.97, 0.01, 0.02)]
    first, second = course(chain, blocks, fit=(0.4, 0.3))
    assert second == pytest.approx(first)


def test_free_space_gains_where_it_fits_better(chain):
    blocks = [(0.5, 0.48, 0.02), (0.97, 0.01, 0.02)]
    assert course(chain, blocks, fit=(0.3, 0.4)) == pytest.approx(np.array(blocks))


def test_a_contact_may_gain_on_free_space(chain):
    blocks = [(0.5, 0.48, 0.02), (0.01, 0.97, 0.02)]
    assert course(chain, blocks, fit=(0.4, 0.3)) == pytest.approx(np.array(blocks))


def test_an_improbable_contact_makes_way(chain):
    """It would take the force of a contact that closes later."""
    blocks = [(0.93, 0.05, 0.02), (0.97, 0.01, 0.02)]
    assert course(chain, blocks, fit=(0.4, 0.3)) == pytest.approx(np.array(blocks))


@pytest.mark.parametrize(("rests", "share"), [(True, 0.5), (False, 0.75)])
def test_rest_does_not_tell_a_known_contact_from_an_unknown_one(chain, rests, share):
    _, contact, unknown = course(chain, [(0.2, 0.4, 0.4), (0.2, 0.6, 0.2)], fit=(0.4, 0.4), rests=rests)[-1]
    assert contact / (contact + unknown) == pytest.approx(share)


def test_it_lasts_while_a_contact_may_be_closed_and_while_an_arm_that_is_touched_rests(chain):
    block, error = 0.01, SETTINGS.decision_error

    def blocks_of(p, moves):
        decision = StartDecision(chain, SETTINGS)
        done = [decision.add(probabilities(chain, *p), block, moves) for _ in range(100)]
        assert decision.pending != done[-1]
        return done.index(True) + 1 if any(done) else None

    expected = SETTINGS.decision_time / block
    assert blocks_of((0.99, 0.5 * error, 0.01 - 0.5 * error), moves=False) == pytest.approx(expected, abs=1)
    assert blocks_of((0.1, 0.5 * error, 0.9 - 0.5 * error), moves=True) == pytest.approx(expected, abs=1)
    assert blocks_of((0.1, 0.5 * error, 0.9 - 0.5 * error), moves=False) is None
    assert blocks_of((0.98, 2 * error, 0.02 - 2 * error), moves=True) is None
