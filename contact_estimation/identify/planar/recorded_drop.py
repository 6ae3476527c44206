"""m/I of a recorded drop, with a verdict: first the flights, then the contact, each with its own tests.

The model of the flights (:mod:`flights`) has no contact. The model of the contact (:mod:`contact_geometry`) has neither
friction nor restitution. The tests of the flights are residuals against noise from differences, the acceleration of
free fall, and clocks. Those of the contact are the place of an impact, friction against that of rigid impacts
(:mod:`routh`), and the agreement of the impacts on m/I.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm

from contact_estimation.exceptions import ConfigError, IdentificationError, shape_error
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.centre_of_mass import check_centre
from contact_estimation.identify.planar.contact_geometry import Correction, Impacts, Told
from contact_estimation.identify.planar.flights import (
    IMPACT_DURATION,
    FlightFit,
    Noise,
    Recording,
    find_impacts,
    fit_flights,
    measure_noise,
)
from contact_estimation.identify.planar.gyration import Scan, scan_gyration
from contact_estimation.identify.planar.routh import friction_costs
from contact_estimation.identify.planar.shapes import Shape, ratio_bounds
from contact_estimation.identify.verdict import (
    GOOD,
    Finding,
    Verdict,
    chi_square,
    conclude,
    delay,
    lag_correlation,
    outliers,
    repeated,
    score_test,
    total_std,
    whiteness,
)

FALSE_ALARM = 0.03  # share of sound recordings that may be called doubtful
_ALARM = FALSE_ALARM / 16  # of one test; about 16 are made of a recording
_FEWEST_SAMPLES = 12  # of a recording
_SAMPLES_AFTER = 3  # a flight after the last impact needs as many
_ROUNDING = 0.25  # channels below so much of the noise's power show rounding or the floor, not noise
_FLOOR = 3e-4  # of the outline's radius, and [rad]: positions are never trusted more closely
_MOST_FRICTION, _FRICTIONS = 2.0, 201  # coefficients compared: up to, and how many
_FRICTION_TEST = "friction"  # it does not bear on m/I
_LEAST_FRICTION_STD = 0.01  # the grid's spacing
_SHARP = 0.1  # [samples] an impact's instant must be known to so much to say whether it happens at a sample
_FEWEST = 30  # numbers of one kind that a test of whiteness needs
_LEAST_ACCELERATION = 0.1  # [m/s^2, rad/s^2] that is let pass however sharply it is known
_LATEST, _DELAYS = 0.02, 41  # clock offsets tried: up to [s], and how many
_WIDEST = 100.0  # an interval is never widened more; by then the bounds of the outline hold it
_EXPLAINED, _PAYS = 0.5, 25.0  # a clock offset must take away this share of the excess chi-square, and this much
_FATAL_CONTACT = 9.0  # reduced chi-square of the contact conditions above which they do not hold at all
_FLAT_TEST = "informative"
_FLAT = 0.5  # share of the radii of gyration that explain the impacts alike, above which they say nothing
_PLACED = 0.01  # of the outline's radius: an error of the centre of mass, as an example for the user
_MOST_UNCHECKED = 0.05  # share of m/I that a centre of mass may change which the impacts do not check


@dataclass(frozen=True)
class RecordedDrop:
    """Result of :func:`identify_recorded_drop`.

    Attributes:
        m_over_i: m/I [1/m^2].
        interval: 95 % interval from the noise.
        interval_total: the same with the model error that was found; never narrower.
        times: instants of the impacts used (J,) [s].
        jumps: changes of velocity (J, 3); (dvx, dvy) is the impulse per unit mass (tangential, normal) [m/s].
        friction: least friction (J,) that explains each impact, |dvx| / dvy.
        verdict: what the tests say.
        status: ``local`` where the verdict is good; ``undetermined``, ``doubtful`` or ``failed``.
    """

    m_over_i: float
    interval: tuple[float, float]
    interval_total: tuple[float, float]
    times: Array
    jumps: Array
    friction: Array
    verdict: Verdict
    status: str


@dataclass(frozen=True)
class _Window:
    """The recording up to an impact, and what its flights and impacts say."""

    recording: Recording
    noise: Noise
    fit: FlightFit
    impacts: Impacts
    scan: Scan
    best: Correction
    findings: tuple[Finding, ...]


def identify_recorded_drop(
    told: Told,
    t: ArrayLike,
    q: ArrayLike,
    v: ArrayLike | None,
    slope: float = 0.0,
    max_impacts: int = 4,
    impact_duration: float = IMPACT_DURATION,
) -> RecordedDrop:
    """Identify m/I from noisy states of a body that falls on flat ground at y = 0.

    Args:
        told: shape, friction, and how well they and the centre of mass are known.
        t: instants (N,) [s], increasing; they need not be even.
        q: configurations (N, 3) as in :mod:`shapes` [m, rad].
        v: velocities (N, 3) [m/s, rad/s] at the same instants; None where only q was measured.
        slope: angle [rad] by which the ground falls towards +x.
        max_impacts: at most so many impacts are used, from the first one on.
        impact_duration: longest time [s] that an impact may last, greater than 0. It says how far contacts may give
            way; a larger one widens the interval and the tolerance of the tests of the contact.

    Raises:
        ConfigError: shapes disagree, or a number is out of range.
        IdentificationError: fewer than 12 samples, samples that are not finite, or no impact in the recording.
    """
    if max_impacts < 1:
        raise ConfigError(f"identify_recorded_drop: max_impacts is {max_impacts!r}, expected at least 1")
    raw = replace(_pose(told, t, q, v), slope=float(slope), impact_duration=_positive_time(impact_duration))
    recording = _fresh(raw)
    noise = _with_floor(measure_noise(recording), told.shape)
    noise = _with_floor(measure_noise(recording, find_impacts(recording, noise).times), told.shape)
    times = find_impacts(recording, noise).times
    if not len(times):
        raise IdentificationError(
            "no impact found in the recording: free flight says nothing about m/I; record a bounce"
        )
    windows = _windows(told, recording, noise, times, max_impacts)
    if not windows:
        raise IdentificationError(
            f"no flight of {_SAMPLES_AFTER} samples follows any of the first {max_impacts} impacts; samples are "
            f"{recording.interval:.3g} s apart: record faster, or give the times in s"
        )
    best = _choose(windows)
    stepped = _windows(told, replace(recording, stepped=True), noise, times, max_impacts) if _flags(best) else []
    if stepped:
        other = _choose(stepped)
        best = other if not _flags(other) and _at_samples(other) else best
    return _result(told, raw, _clock(told, recording, noise, best, max_impacts))


def _positive_time(impact_duration: float) -> float:
    if not 0.0 < impact_duration < np.inf:
        raise ConfigError(
            f"the longest impact lasts {impact_duration!r} s, expected a time greater than 0, such as 2e-3"
        )
    return float(impact_duration)


def _pose(told: Told, t: ArrayLike, q: ArrayLike, v: ArrayLike | None) -> Recording:
    """Check what was told and measured of :func:`identify_recorded_drop`."""
    t, q = np.asarray(t, float), np.asarray(q, float)
    rates = None if v is None else np.asarray(v, float)
    for name, rows in (("q", q), ("v", rates)):
        if rows is not None and rows.shape != (len(t), 3):
            raise shape_error("identify_recorded_drop", name, rows.shape, (len(t), 3))
    if not min(told.friction, told.friction_std, told.size_std, told.centre_std or 0.0) >= 0.0:
        raise ConfigError(
            f"identify_recorded_drop: friction {told.friction!r}, friction_std {told.friction_std!r}, size_std "
            f"{told.size_std!r} and centre_std {told.centre_std!r} must not be negative"
        )
    bad = np.count_nonzero(~np.isfinite(np.column_stack([t, q, q if rates is None else rates])))
    if len(t) < _FEWEST_SAMPLES or bad:
        raise IdentificationError(
            f"a drop needs at least {_FEWEST_SAMPLES} samples, all finite; got {len(t)} with {bad} that are not"
        )
    if np.diff(t).min() <= 0.0:
        raise IdentificationError("the instants of a drop must increase; sort them and leave out repeated ones")
    return Recording(t, q, rates)


def _fresh(recording: Recording) -> Recording:
    """Leave out samples that repeat the one before: the tracker was frozen."""
    new = np.append(True, (np.diff(recording.q, axis=0) != 0.0).any(axis=1))
    if np.count_nonzero(new) < _FEWEST_SAMPLES:
        return recording
    v = None if recording.v is None else recording.v[new]
    return replace(recording, t=recording.t[new], q=recording.q[new], v=v)


def _with_floor(noise: Noise, shape: Shape) -> Noise:
    """Noise of positions, plus the error of an instantaneous impact: a real one lasts, and friction acts within it."""
    sigma = noise.sigma.copy()
    sigma[:3] = np.hypot(sigma[:3], _FLOOR * np.array([shape.radius, shape.radius, 1.0]))
    return replace(noise, sigma=sigma)


def _windows(told: Told, recording: Recording, noise: Noise, times: Array, most: int) -> list[_Window]:
    """Windows of 1, 2, ... impacts; each looks for impacts that the whole recording has hidden."""
    windows: list[_Window] = []
    count = 1
    while count <= min(most, len(times)):
        window = recording.until(times[count]) if len(times) > count else recording
        if np.count_nonzero(window.t > times[count - 1]) < _SAMPLES_AFTER:
            count += 1
            continue
        fit = find_impacts(window, noise, times[:count])
        if len(fit.times) > count:
            times = np.append(fit.times, times[count:])
            continue
        impacts = Impacts(window, noise, fit, told)
        windows.append(_judge(told, window, noise, fit, impacts))
        count += 1
    return windows


def _choose(windows: list[_Window]) -> _Window:
    """Longest window without a flag, else the one with the fewest.

    One impact agrees with almost anything, so it only counts where the recording has no two that inform.
    """
    checked = [window for window in windows if window.impacts.informative > 1]
    return min(reversed(checked or windows), key=_flags)


def _flags(window: _Window) -> int:
    """How many tests that bear on m/I found something."""
    return sum(finding.flagged for finding in window.findings if finding.test != _FRICTION_TEST)


def _at_samples(window: _Window) -> bool:
    """Whether every impact happens at a sample, as time stepping has it; at least two must be sharp enough to say."""
    step, t, fit = window.recording.interval, window.recording.t, window.fit
    std = np.sqrt(np.diag(fit.covariance)[-len(fit.times) :])
    off = np.abs(t[:, None] - fit.times).min(axis=0)
    sharp = std < _SHARP * step
    even = float(np.ptp(np.diff(t))) < 0.01 * step
    return even and int(sharp.sum()) >= 2 and bool((off[sharp] < np.maximum(4.0 * std[sharp], 0.02 * step)).all())


def _judge(told: Told, recording: Recording, noise: Noise, fit: FlightFit, impacts: Impacts) -> _Window:
    """Make every test of one window."""
    scan = scan_gyration(impacts)
    best = impacts.correct(float(scan.minima[0, 0]))
    findings = [
        *_noise_findings(recording, noise, fit),
        *_fall_findings(recording, noise, fit),
        *_contact_findings(impacts, best),
        *_path_findings(told, recording, noise, fit, impacts),
        *_friction_findings(told, impacts, best, scan),
        *_optima_findings(impacts, scan),
    ]
    return _Window(recording, noise, fit, impacts, scan, best, tuple(findings))


def _noise_findings(recording: Recording, noise: Noise, fit: FlightFit) -> Iterator[Finding]:
    """Test the flights' residuals against the noise of differences."""
    for first, what in ((0, "positions"), (3, "velocities"))[: 1 if recording.v is None else 2]:
        z = fit.residual[:, first : first + 3]
        z = z[np.isfinite(z).all(axis=1)]
        precision = float(np.sqrt(2.0 / noise.samples[first : first + 3].sum()))
        fitted = fit.rows.shape[1] if recording.v is None else fit.rows.shape[1] // 2
        found = [chi_square(z, min(fitted, z.size - 1), _ALARM, what, precision), outliers(z, _ALARM, what)]
        noisy = z[:, np.mean(z * z, axis=0) > _ROUNDING]
        if len(z) >= _FEWEST and noisy.size:
            found.append(whiteness(noisy, _ALARM, what))
        yield from (replace(finding, test=f"{finding.test}_{what}") for finding in found)


def _unchecked_error(window: _Window, told: Told) -> float:
    """Return the standard deviation of ln(m/I) from the centre of mass; 0 where the impacts check the centre."""
    if not window.impacts.informative:
        return 0.0
    found = check_centre(window.impacts, window.best, window.scan.ratio, told.centre_std)
    return 0.0 if found.checked else found.error


def _redundancy(window: _Window, error: float) -> Finding:
    """Test how much of m/I rests on a centre of mass that the impacts do not check."""
    impacts = window.impacts
    share = check_centre(impacts, window.best, window.scan.ratio, _PLACED).error if error > 0.0 else 0.0
    message = (
        f"{'one impact alone' if impacts.informative == 1 else 'the impacts'} cannot tell m/I and the centre of mass "
        f"apart: with the centre {1e3 * _PLACED * impacts.shape.radius:.2g} mm off along the ground m/I is "
        f"{100.0 * share:.0f} % off; record a drop that bounces on one corner twice, with a flight between, or state "
        "how well the centre is known (--centre-std)"
    )
    return Finding("redundant", error, _MOST_UNCHECKED, message)


def _sensor_findings(recording: Recording) -> Iterator[Finding]:
    """Test the raw samples: repeated states, and rates at the limit of their range."""
    rows = recording.q if recording.v is None else np.hstack([recording.q, recording.v])
    same = int(np.count_nonzero((np.diff(recording.q, axis=0) == 0.0).all(axis=1)))
    message = f"{same} samples repeat the one before exactly: the tracker was frozen; they were left out"
    yield Finding("repeated", float(same), 0.0, message)
    longest = max(repeated(column, 4) for column in rows.T)
    message = f"a channel stays at its largest or smallest value for {longest} samples: the sensor is at its limit"
    yield Finding("rail", float(longest), 0.0, message)


def _fall_findings(recording: Recording, noise: Noise, fit: FlightFit) -> Iterator[Finding]:
    """Test the acceleration between impacts: free fall straight down, even rotation."""
    used = np.isfinite(fit.residual)
    says = (
        "the body gathers speed along the ground by {0:+.2f} m/s^2 in flight: the ground is tilted, or the camera is",
        "the body falls with {1:.2f} instead of 9.81 m/s^2: lengths or times are scaled, or gravity is not along -y",
        "the rotation changes by {0:+.2f} rad/s^2 in flight: q is not the centre of mass, or something touches",
    )
    for axis, (name, text) in enumerate(zip(("along", "fall", "spin"), says)):
        nuisance = np.zeros_like(fit.residual)
        nuisance[:, axis] = 0.5 * recording.t**2 / noise.sigma[axis]
        if recording.v is not None:
            nuisance[:, axis + 3] = recording.t / noise.sigma[axis + 3]
        value, std = score_test(fit.residual[used], fit.rows, nuisance[used])
        threshold = max(float(norm.isf(0.5 * _ALARM)) * std, _LEAST_ACCELERATION)
        yield Finding(name, abs(value), threshold, text.format(value, 9.81 - value))


def _contact_findings(impacts: Impacts, best: Correction) -> Iterator[Finding]:
    """Test where the impacts happen and whether they agree on m/I."""
    informative = impacts.informative
    dof = impacts.count + max(informative - 1, 0)
    statistic = best.chi_square / dof
    message = (
        "impacts do not agree on where the outline meets the ground and how impulses turn the body: size, centre of "
        "mass, height of the ground or direction of the angle is not as given, or an impact is missing"
    )
    threshold = float(chi2.isf(_ALARM, dof)) / dof
    yield Finding("contact", statistic, threshold, message, fatal=statistic > _FATAL_CONTACT)
    worst = int(np.argmax(np.abs(best.scores[: impacts.count])))
    message = (
        f"at an impact the outline is {1e3 * best.misses[worst]:+.0f} mm off the ground: its size, the height of the "
        "ground or the length unit is not as given, or something else was hit"
    )
    limit = float(norm.isf(0.5 * _ALARM / impacts.count))
    yield Finding("height", abs(float(best.scores[worst])), limit, message)


def _path_findings(told: Told, window: Recording, noise: Noise, fit: FlightFit, impacts: Impacts) -> Iterator[Finding]:
    """Test whether the fitted path passes through the ground between impacts."""
    q = window.q - fit.residual[:, :3] * noise.sigma[:3]
    depth = -(q[:, 1] + told.shape.levers(q[:, 2])[..., 1].min(axis=-1))
    levels = noise.sigma[1] + told.shape.radius * noise.sigma[2]
    message = (
        f"the body would pass {1e3 * depth.max():.0f} mm through the ground: an impact was missed, or y = 0 is not it"
    )
    gives_way = 0.5 * window.impact_duration * impacts.approach_speeds.max()
    limit = 4.0 * (levels + told.size_std * told.shape.radius) + gives_way
    yield Finding("path", float(depth.max()), limit, message)


def _friction_findings(told: Told, impacts: Impacts, best: Correction, scan: Scan) -> Iterator[Finding]:
    """Test friction by the likelihood ratio of what was told against any other, and the direction of the impulses."""
    frictions = np.linspace(0.0, max(2.0 * told.friction, _MOST_FRICTION), _FRICTIONS)
    costs = friction_costs(impacts, frictions, best, scan)
    allowed = costs + ((frictions - told.friction) / max(told.friction_std, _LEAST_FRICTION_STD)) ** 2
    message = (
        f"the impacts need a friction of {frictions[np.argmin(costs)]:.2f}, as far as they slide; "
        f"{told.friction:.2f} was given"
    )
    ratio = float(np.sqrt(allowed.min() - costs.min()))
    yield Finding(_FRICTION_TEST, ratio, float(norm.isf(0.5 * _ALARM)), message)
    normal_std = np.sqrt(np.diag(impacts.spread)[3 : 5 * impacts.count : 5])
    message = "an impact pulls the body towards the ground: samples are far off, or y is upside down"
    pull = float(np.max(-best.values[:, 3] / normal_std))
    yield Finding("pull", pull, float(norm.isf(0.5 * _ALARM / impacts.count)), message)


def _optima_findings(impacts: Impacts, scan: Scan) -> Iterator[Finding]:
    """Test whether the impacts single out one m/I."""
    std = (scan.interval[1] - scan.interval[0]) / 3.92
    near = scan.minima[scan.minima[:, 1] < scan.minima[0, 1] + 9.2, 0]
    apart = float(np.abs(near - scan.ratio).max() / std)
    which = f"{near.min():.3g} to {near.max():.3g}" if len(near) > 3 else " and ".join(f"{r:.3g}" for r in near)
    message = f"m/I of {which} 1/m^2 explain the impacts equally well"
    yield Finding("optima", apart if len(near) > 1 else 0.0, 3.0, message)
    message = (
        "the impacts say next to nothing about m/I (landings on two contacts at once, or straight below the centre of "
        "mass); record a drop that lands on one corner and turns"
    )
    flat = scan.flat if impacts.informative else 1.0
    yield Finding(_FLAT_TEST, flat, _FLAT, message, fatal=True)


def _clock(told: Told, recording: Recording, noise: Noise, best: _Window, most: int) -> _Window:
    """Return the drop with velocities shifted in time, where that explains what is flagged; else ``best`` as it is."""
    if recording.v is None or not _flags(best):
        return best
    positions = replace(recording, v=None)
    times = find_impacts(positions, Noise(noise.sigma[:3], noise.samples[:3])).times
    if not len(times):
        return best
    window = recording.until(times[most]) if len(times) > most else recording
    delays = np.linspace(-_LATEST, _LATEST, _DELAYS)
    costs = [fit_flights(replace(window, delay=late), noise, times[:most]).chi_square for late in delays]
    k, unshifted = int(np.argmin(costs)), costs[_DELAYS // 2]
    excess = unshifted - np.count_nonzero(np.isfinite(window.channels))
    if unshifted - costs[k] < max(_EXPLAINED * excess, _PAYS):
        return best
    windows = _windows(told, replace(recording, delay=float(delays[k])), noise, times, most)
    if not windows:
        return best
    found = _choose(windows)
    clock = delay(float(delays[k]), 0.25 * float(delays[1] - delays[0]), "velocities", "positions")
    return replace(found, findings=(clock, *found.findings))


def _result(told: Told, recording: Recording, window: _Window) -> RecordedDrop:
    """Read a window of a recording out."""
    scan, impacts, unchecked = window.scan, window.impacts, _unchecked_error(window, told)
    verdict = conclude([*window.findings, _redundancy(window, unchecked), *_sensor_findings(recording)])
    q_flights = window.fit.chi_square / max(window.fit.degrees, 1)
    dof = impacts.count + max(impacts.informative - 1, 0)
    lag = float(np.nanmean(lag_correlation(np.nan_to_num(window.fit.residual)))) if verdict.verdict != GOOD else 0.0
    wider = float(total_std(np.ones(1), max(q_flights, window.best.chi_square / dof, 1.0), lag)[0])
    wider = wider if verdict.verdict != GOOD else 1.0
    low, high = scan.interval
    least, most = ratio_bounds(impacts.shape)
    widest = np.log(most / least)
    below, above = (
        float(np.exp(min(np.hypot(min(wider, _WIDEST) * np.log(end / scan.ratio), 1.96 * unchecked), widest)))
        for end in (low, high)
    )
    total = (min(low, max(scan.ratio / below, least)), max(high, min(scan.ratio * above, most)))
    flat = any(finding.flagged for finding in window.findings if finding.test == _FLAT_TEST)
    status = "undetermined" if flat else "local" if verdict.verdict == GOOD else verdict.verdict
    jumps = window.best.values[:, 2:]
    friction = np.abs(jumps[:, 0]) / np.maximum(jumps[:, 1], 1e-9)
    times = window.fit.times[: impacts.count]
    return RecordedDrop(scan.ratio, scan.interval, total, times, jumps, friction, verdict, status)
