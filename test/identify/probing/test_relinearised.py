"""The second pass over a recording, linearised where the first one ended."""

import numpy as np
import pytest

from benchmark.adversary import probing as world
from contact_estimation.identify.probing.disturbances import Samples, candidates
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.relinearised import RelinearisedFilter
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.trial import Trial

CFG = ProbingSettings()


def tried(folder, fault, kind):
    """Truth, recording and first pass, with one kind of disturbance freed."""
    case = world.write(folder, fault, np.random.default_rng([7, 8]))
    with np.load(folder / "probe.npz") as arrays:
        data = Samples(*(arrays[name] for name in Samples._fields))
        tip, phi = arrays["tip"], float(arrays["phi"])
    model = PlanarModel(*CFG.bounds())
    freed = next((each for each in candidates(data) if each.name == kind), None)
    trial = Trial(model, model.start(CFG, data.pose[0], tip, phi), CFG, freed=freed)
    return case.truth, data, trial.first(data)


@pytest.mark.parametrize("fault, kind", [("bias", "offset"), ("stiffness_jump", "")])
def test_the_second_pass_knows_more_and_is_right(tmp_path, fault, kind):
    truth, data, first = tried(tmp_path, fault, kind)
    second = first.refined(data).fit.estimate
    apart = (second.mean - [truth[name] for name in second.names]) / second.std
    assert np.all(np.abs(apart) < 3.0), apart
    assert np.all(second.std < 1.02 * first.fit.estimate.std)
    assert second.std[5] < {"bias": 0.75, "stiffness_jump": 1.0}[fault] * first.fit.estimate.std[5]


def test_until_the_parameters_hold_the_second_pass_is_the_first(tmp_path):
    _, data, first = tried(tmp_path, "clean", "")
    model, settings = first.trial.model, first.trial.settings
    never = RelinearisedFilter(model, settings, None, first.fit.local, since=np.inf)
    never.start(data.t[0], data.pose[0], *first.trial.start)
    for k in range(1, len(data.t)):
        never.step(data.t[k] - data.t[k - 1], data.pose[k], data.twist[k], data.wrench[k])
    assert np.array_equal(never.estimate().mean, first.fit.estimate.mean)
