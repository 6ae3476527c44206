"""A recording's signals compared with each other, before any filter: motion of pose and twist, frozen samples."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.arrays import equal_runs
from contact_estimation.identify.probing.disturbances import Samples
from contact_estimation.identify.probing.model import ContactModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.verdict import Finding

#: Motion of pose and twist is compared over [s]; share of it that the twist may leave; least motion, as a multiple of
#: the noise's square.
_WINDOW, _LEFT, _LEAST = 0.2, 0.25, 10.0
#: Relative error of the twist's scale that is let pass, and standard deviations from which a larger one counts.
_SCALE_ERROR, _SIGMAS = 0.03, 5.0
#: Equal samples in a row that are let pass: noise does not repeat. And the multiple of their usual number: a slow
#: sensor may be logged faster than it measures. Readings that tell their usual number.
_EQUAL, _FACTOR, _READINGS = 4.0, 3.0, 20
#: Motion per sample from which a pose does not repeat [standard deviations of the position].
_MOVING = 3.0


def compare_motion(path: Path, model: ContactModel, data: Samples, settings: ProbingSettings) -> Finding:
    """Compare the twist with the rate of the pose.

    Steps x of the pose and integrals y of the twist, each over 0.2 s, obey y = g x. Least squares give the scale g,
    with the noise's share taken off sum x^2.

    Args:
        path: of the recording, for errors.
        model: tells how poses differ.
        data: samples.
        settings: noise.

    Returns:
        the test of g = 1, of position or orientation, whichever is farther off.

    Raises:
        RecordingError: the twist is no rate of the pose at all: other units, axes or stamps.
    """
    dt = np.diff(data.t)
    steps = np.array([model.difference(after, before) for before, after in pairwise(data.pose)])  # (T-1, axes)
    rates = 0.5 * dt[:, None] * (data.twist[1:] + data.twist[:-1])
    even = (dt < 2.0 * np.median(dt)) & ~_equal(data.pose)  # not across a gap, nor where the pose is frozen
    starts = np.arange(0, len(dt), max(int(_WINDOW / np.median(dt)), 1))
    moved, told, count, time = (
        np.add.reduceat((even * each.T).T, starts) for each in (steps, rates, np.ones(len(dt)), dt**2)
    )
    kinds = (
        ("position", slice(0, model.force_size), settings.position_noise, settings.velocity_noise),
        ("orientation", slice(model.force_size, None), settings.angle_noise, settings.rate_noise),
    )
    tests = [Finding("twist", 0.0, _SCALE_ERROR, "")]
    for name, part, pose_noise, rate_noise in kinds:
        width = moved[:, part].shape[1]
        of_pose = width * float(np.sum(2.0 * pose_noise**2 * (count > 0)))
        noise = of_pose + width * float(np.sum(rate_noise**2 * time))
        motion, left = (float(np.sum(np.square(x[:, part]))) for x in (moved, moved - told))
        if motion <= _LEAST * noise:
            continue
        if left - noise > _LEFT * motion:
            ratio = np.sqrt(float(np.sum(np.square(told[:, part]))) / motion)
            raise RecordingError(
                f"{path}: twist is not the rate of pose: the {name} changes, and the twist says {ratio:.2g} times as "
                "much or another direction; expected m, rad, m/s and rad/s, and both in the axes of the base"
            )
        scale = float(np.sum(told[:, part] * moved[:, part])) / (motion - of_pose)
        std = float(np.sqrt(noise / moved[:, part].size / motion))
        message = f"the twist says {scale:.2f} times the motion of the {name}; correct the scale of the twist"
        tests.append(Finding("twist", abs(scale - 1.0), max(_SIGMAS * std, _SCALE_ERROR), message))
    return max(tests, key=lambda test: test.statistic / test.threshold)


def frozen(model: ContactModel, data: Samples, settings: ProbingSettings) -> list[Finding]:
    """Look for a wrench that repeats, and for a pose that repeats while the twist says that it moves.

    Args:
        model: tells which axes of the twist are velocities.
        data: samples.
        settings: noise.

    Returns:
        a test of each; the statistic is the number of equal samples in a row.
    """
    moved = np.linalg.norm(data.twist[1:, : model.force_size], axis=1) * np.diff(data.t)
    moving = moved > _MOVING * settings.position_noise
    return [_repeats("wrench", data.t, _equal(data.wrench)), _repeats("pose", data.t, _equal(data.pose) & moving)]


def _equal(values: np.ndarray) -> np.ndarray:
    """Tell which rows (T-1,) of values (T, ...) equal the one before."""
    return np.asarray(np.all(np.diff(values.reshape(len(values), -1), axis=0) == 0.0, axis=1))


def _repeats(name: str, t: np.ndarray, same: np.ndarray) -> Finding:
    """Test the longest run of equal samples, beside the usual one."""
    first, last = equal_runs(same)
    longest = int(np.argmax(last - first))
    begin, end = int(first[longest]), int(last[longest])
    usual = len(t) / len(first) if len(first) >= _READINGS else 1.0  # fewer are no slow sensor: it was frozen
    limit = max(_EQUAL, _FACTOR * usual)
    message = f"the {name} repeats from {t[begin]:.2f} to {t[end]:.2f} s: it was frozen; cut these samples out"
    return Finding(f"frozen[{name}]", float(end - begin + 1), limit, message)
