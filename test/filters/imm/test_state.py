"""Every entry of the filters' state has one place, one prior and one motion."""

import numpy as np
import pytest

from contact_estimation import open_stream
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.signals import all_shapes
from contact_estimation.filters.imm.state import StateLayout


def test_slices_cover_the_state_once(layout):
    slices = [*(c.where for c in layout.contacts), *list(layout.parts.where.values())[1:]]
    covered = np.concatenate([np.arange(layout.size)[s] for s in slices])
    np.testing.assert_array_equal(covered, np.arange(layout.size))
    assert [c.estimated for c in layout.contacts] == [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 7, 8]]
    assert layout.size == 10 + 4 + 3 * 6 + 2 * layout.m


def test_priors_are_the_settings(layout, actuators, two_contacts):
    table = two_contacts.contacts[0]
    np.testing.assert_allclose(layout.mean[0], np.log(table.stiffness))
    np.testing.assert_allclose(np.sqrt(layout.variance[:2]), [np.log(table.stiffness_factor), table.rest_std])
    np.testing.assert_allclose(np.sqrt(layout.first_variance[1]), table.rest_std_first)
    np.testing.assert_allclose(layout.mean[layout.parts["coulomb"]], actuators.friction.coulomb)
    np.testing.assert_allclose(np.exp(layout.mean[layout.parts["joint_stiffness"]]), actuators.elastic.stiffness)
    np.testing.assert_allclose(layout.mean[layout.contacts[1].where][1], 0.4)


def test_a_zero_uncertainty_is_not_estimated(actuators):
    contact = ImmContact(normal=[0, 0, 1], normal_std=0.0, point_std=[0.02, 0.0, 0.0])
    layout = StateLayout(ImmSettings(contacts=[contact]), actuators, 6)
    assert layout.contacts[0].estimated == [0, 1, 4, 6, 7, 8, 9]
    layout = StateLayout(ImmSettings(contacts=[contact.known_tool]), actuators, 6)
    assert layout.contacts[0].estimated == [0, 1, 4, 7, 8, 9]


def test_basis_is_right_handed_and_starts_with_the_normal(layout, two_contacts):
    for basis, contact in zip(layout.basis, two_contacts.contacts):
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-15)
        assert np.linalg.det(basis) == pytest.approx(1.0)
        np.testing.assert_allclose(basis[:, 0], contact.normal / np.linalg.norm(contact.normal))


def test_lasting_entries_keep_their_variance_and_walks_grow(layout, actuators):
    decay, noise, _ = layout.drift(0.01)
    variance = layout.variance.copy()
    for _ in range(2000):
        variance = decay**2 * variance + noise
    lasting = np.isfinite(layout.time_constant)
    np.testing.assert_allclose(variance[lasting], layout.variance[lasting])
    np.testing.assert_allclose(variance[~lasting], layout.variance[~lasting] + 20.0 * layout.random_walk[~lasting])
    np.testing.assert_allclose(np.sqrt(layout.random_walk[layout.parts["bias"]]), actuators.bias_random_walk)


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_every_shared_buffer_has_the_size_of_its_signal(robot):
    observer = open_stream(robot, "contact_imm").observer
    known = {name: np.prod(shape) for name, shape in all_shapes(observer.layout).items()}
    buffers = {name: buffer.size for name, buffer in observer._signals.items() if name != "w_next"}
    assert buffers == {name: known[name] for name in buffers}
