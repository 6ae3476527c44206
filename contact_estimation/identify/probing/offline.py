"""Identify from a recording of a real probing motion, with a verdict on the result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.probing.curved import CurvedPlanarModel
from contact_estimation.identify.probing.disturbances import Samples
from contact_estimation.identify.probing.estimate import ProbingEstimate, bound_problem
from contact_estimation.identify.probing.innovations import Innovations
from contact_estimation.identify.probing.model import ContactModel, Start
from contact_estimation.identify.probing.passes import disturbed_passes, loosened_passes
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.signals import compare_motion, frozen
from contact_estimation.identify.probing.spatial import SpatialModel, frame_from_normal
from contact_estimation.identify.probing.trial import Pass, Trial
from contact_estimation.identify.verdict import Finding, Verdict, conclude, interval, repeated, total_std
from contact_estimation.io.npz import read_arrays

#: Tests between which the probability of a false alarm is divided.
_TESTS = 13.0
#: Share of wrenches beyond the gate from which the rest is no sample of the recording any more.
_LEFT_OUT_FAILED = 0.25
#: [s] Shortest interval without samples that counts as a gap, and its least factor on the median interval.
_GAP, _GAP_FACTOR = 0.2, 4.0
#: A stiffer surface gives the same wrench as a sensor that reads too much in every axis.
_UNCHECKED = "no measurement checks the scale of the wrench; it would move stiffness"
#: Arrays of a recording in the plane and in space: name -> shape of one sample.
_SAMPLES: dict[str, dict[str, tuple[int, ...]]] = {
    "planar": {"t": (), "pose": (3,), "twist": (3,), "wrench": (3,)},
    "spatial": {"t": (), "pose": (4, 4), "twist": (6,), "wrench": (6,)},
}
#: The rough guess: name -> shape.
_GUESS: dict[str, dict[str, tuple[int, ...]]] = {
    "planar": {"tip": (2,), "phi": ()},
    "spatial": {"tip": (3,), "normal": (3,)},
}


def identify_recording(path: Path, example: str, settings: ProbingSettings) -> tuple[dict[str, Any], Verdict]:
    """Filter a recording that begins at first contact, and judge the result.

    The recording is filtered once more with each disturbance freed (offset, delay, weight, gain, curvature and so on).
    Of those whose estimates are not zero, the one with the largest evidence is named. Its result is that of a second
    pass, linearised where the first ended.

    Args:
        path: ``.npz`` with ``t`` (T,) [s], ``pose`` (T, 3) [m, m, rad] or (T, 4, 4), ``twist`` and ``wrench`` (T, 3 or
            6; the wrench is that of the environment ON the probe in end-effector axes), and the rough guess: ``tip``
            (2 or 3,) [m] and ``phi`` [rad], the surface's angle, or ``normal`` (3,), pointing out of it.
        example: ``planar`` or ``spatial``.
        settings: priors and noise.

    Returns:
        names, units, mean, std and ``interval_total`` (95 %, with the model error that was found) of the parameters
        after the last sample, samples and used samples, mean NIS per component, the disturbance and its value; and
        the verdict.

    Raises:
        RecordingError: the file or an array is missing, misshapen, not finite, time does not advance, or the twist is
            not the rate of the pose.
    """
    arrays = _load(Path(path), _SAMPLES[example], _GUESS[example])
    data = Samples(*(arrays[name] for name in Samples._fields))

    def plane(model: PlanarModel) -> tuple[ContactModel, Start]:
        return model, model.start(settings, data.pose[0], arrays["tip"], float(arrays["phi"]))

    def space() -> tuple[ContactModel, Start]:
        model = SpatialModel(*settings.bounds(), [frame_from_normal(arrays["normal"])])
        return model, model.start(settings, data.pose[0], arrays["tip"])

    bounds, make, curved = settings.bounds(), space, None
    if example == "planar":
        make, curved = (lambda: plane(PlanarModel(*bounds))), (lambda: plane(CurvedPlanarModel(*bounds)))
    twist = compare_motion(path, make()[0], data, settings)
    alarm, settled = settings.false_alarm / _TESTS, data.t[0] + settings.settling_time
    plain, freed = Trial(*make(), settings).first(data), disturbed_passes(data, make, curved, settings)
    disturbances = [one.finding(alarm) for one in freed]
    findings = plain.innovations.after(settled).findings(alarm)
    others = [one for one, finding in zip(freed, disturbances) if finding.flagged]
    if plain.changes:  # a change looks like a disturbance, but explains the recording better by itself
        others.append(plain)
    if any(finding.flagged for finding in findings):
        others += loosened_passes(data, make, settings, plain)
    likeliest = max(others, key=lambda one: one.gain(plain, data.t > settled), default=plain)
    best = likeliest.refined(data)
    late = best.innovations.after(settled)
    left = late.findings(alarm)
    judged = [
        *frozen(make()[0], data, settings),
        twist,
        Finding("disturbance", float(likeliest is not plain), 0.0, _explain(best, left)),
    ]
    judged += [_far_from_guess(best, make()[1], alarm), *left]
    judged += [replace(finding, message="") for finding in disturbances]  # the likeliest of them is named alone
    judged += [_left_out(late), _changes(best, settled), _sensor(data), _missing(data)]
    verdict = conclude(judged, _failures(settings, data, best.fit.estimate), [_UNCHECKED])
    return _result(data, plain, best, late), verdict


def _explain(best: Pass, left: list[Finding]) -> str:
    """Name the disturbance, and say so where it leaves much open."""
    if any(finding.flagged for finding in left):
        return f"nothing that was tried explains the wrench; nearest comes: {best.message}"
    return best.message


def _result(data: Samples, plain: Pass, best: Pass, late: Innovations) -> dict[str, Any]:
    """Collect what is printed."""
    count = len(plain.fit.estimate.names)
    mean, std = best.fit.estimate.mean[:count], best.fit.estimate.std[:count]
    return {
        "names": plain.fit.estimate.names,
        "units": best.trial.model.units[:count],
        "mean": mean,
        "std": std,
        "interval_total": _intervals(best, late)[:count],
        "samples": len(data.t),
        "used": int(np.sum(~best.innovations.gated)),
        "nis": late.power,
        "disturbance": best.trial.name,
        "disturbance_value": best.fit.freed,
        "disturbance_std": np.sqrt(np.diag(best.fit.freed_covariance)),
    }


def _intervals(best: Pass, late: Innovations) -> np.ndarray:
    """Return the ends (n_s, 2) of 95 % intervals, those of a bounded parameter within its bounds."""
    estimate = best.fit.estimate
    ends = interval(estimate.mean, total_std(estimate.std, late.power, late.lag1))
    free_std = total_std(np.sqrt(np.diag(estimate.free_covariance)), late.power, late.lag1)
    for i, bounds in best.trial.model.bounds.items():
        ends[i] = interval(estimate.free[i], free_std[i], bounds.to_bounded)
    return ends


def _left_out(late: Innovations) -> Finding:
    """Count wrenches beyond the gate."""
    count = int(late.gated.sum())
    message = f"{count} of {len(late.t)} wrenches lie far off every prediction and were left out"
    return Finding("gated", float(count), 0.0, message, fatal=count > _LEFT_OUT_FAILED * len(late.t))


def _changes(best: Pass, settled: float) -> Finding:
    """Tell when stiffness or friction changed."""
    times = [t for t in best.changes if t > settled]
    when = ", ".join(f"{t:.1f} s" for t in times)
    message = f"stiffness or friction changed at {when}; the result holds from the last of them on"
    return Finding("changes", float(len(times)), 0.0, message)


def _sensor(data: Samples) -> Finding:
    """Look for wrench axes that stay at their limit."""
    stuck = max(repeated(axis) for axis in data.wrench.T)
    message = f"the wrench stays at the same extreme value for {stuck} samples: the sensor is at its limit; press less"
    return Finding("saturation", float(stuck), 0.0, message)


def _missing(data: Samples) -> Finding:
    """Look for the longest interval without samples."""
    intervals = np.diff(data.t)
    at = int(np.argmax(intervals))
    message = f"{intervals[at]:.2f} s of samples are missing after {data.t[at]:.2f} s; what happened there is not known"
    return Finding("gap", float(intervals[at]), max(_GAP, _GAP_FACTOR * float(np.median(intervals))), message)


def _far_from_guess(best: Pass, start: Start, alarm: float) -> Finding:
    """Test the parameters against the rough start, whose spread the settings tell: d^T C^-1 d ~ chi-square."""
    s, covariance, _ = start
    apart = best.fit.local[0][: len(s)] - s
    statistic, share = float(apart @ np.linalg.solve(covariance, apart)), np.abs(apart) / np.sqrt(np.diag(covariance))
    worst = best.fit.estimate.names[int(np.argmax(share))]
    message = (
        f"{worst} lies {share.max():.3g} standard deviations from the guess; correct the guess, or "
        "tell its uncertainty in --settings"
    )
    return Finding("guess", statistic, float(chi2.isf(alarm, len(s))), message)


def _failures(settings: ProbingSettings, data: Samples, estimate: ProbingEstimate) -> list[str]:
    """List why a result is of no use at all."""
    if not np.all(np.isfinite(estimate.mean)) or not np.all(np.isfinite(estimate.std)):
        return ["the estimate is not finite; check units and signs of the recording"]
    axes = data.wrench.shape[1] // 2 + data.wrench.shape[1] % 2  # 2 of 3 in the plane, 3 of 6 in space
    force = float(np.linalg.norm(data.wrench[:, :axes], axis=1).max())
    if force < settings.contact_force_min:
        return [
            f"the probe never touches: its largest force is {force:.2g} N, a touch has contact_force_min = "
            f"{settings.contact_force_min:g} N; begin at first contact, or lower that key in --settings"
        ]
    problem = bound_problem(estimate, settings)
    return [problem] if problem else []


def _load(path: Path, samples: dict[str, tuple[int, ...]], guess: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    data = read_arrays(path, (*samples, *guess))
    count = data["t"].shape
    shapes = {**{name: count + shape for name, shape in samples.items()}, **guess}
    for name, expected in shapes.items():
        if data[name].shape != expected or len(count) != 1 or count[0] < 2:
            raise RecordingError(
                f"{path}: {name} has shape {data[name].shape}, expected {expected} with at least two samples"
            )
        if not np.all(np.isfinite(data[name])):
            raise RecordingError(f"{path}: {name} has values that are not finite; repair or cut the recording")
    if np.any(np.diff(data["t"]) <= 0.0):
        raise RecordingError(f"{path}: t does not advance everywhere; sort the samples and drop repeated ones")
    return data
