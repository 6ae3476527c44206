"""When a contact counts as lost: by its probability, by its force, or by the speed at which the tool sinks."""

from __future__ import annotations

from collections import deque

import numpy as np

from contact_estimation.control.controller import Observation
from contact_estimation.control.mpc.settings import MpcSettings


class LossDetector:
    """Watches the contact of one task, tick by tick.

    Args:
        settings: the task.

    Attributes:
        trail: where the tool pressed, (3,) [m] each, base frame.
    """

    def __init__(self, settings: MpcSettings) -> None:
        self._limits, self._names = settings.safety, [contact.name for contact in settings.contacts]
        wanted = np.array(settings.force)
        self._wanted = float(np.linalg.norm(wanted))
        self._normal = wanted / max(self._wanted, 1e-12)  # (3,) base axes
        self.trail: deque[np.ndarray] = deque(maxlen=1024)
        self._way: deque[tuple[float, float, float]] = deque(maxlen=64)  # time [s], height [m], force [N]

    def restart(self, x: np.ndarray) -> None:
        """Expect the contact below ``x`` (3,) [m]: it is not made yet."""
        self._begun_at, self._made = x, False
        self._low_since: float | None = None
        self._way.clear()

    def closed(self, observation: Observation) -> bool:
        """Return whether a contact of the task is probably closed, or no probability is known.

        Args:
            observation: present estimate.
        """
        known = [observation.probabilities[name] for name in self._names if name in observation.probabilities]
        return not known or max(known) >= self._limits.loss_probability

    def pressed(self, contact_force: np.ndarray) -> bool:
        """Return whether ``contact_force`` (3,) [N] pushes enough for a closed contact, whatever its probability is."""
        return float(self._normal @ contact_force) > self._limits.made_force * self._wanted

    def check(self, t: float, x: np.ndarray, contact_force: np.ndarray, observation: Observation, active: bool) -> str:
        """Return why the contact counts as lost, or an empty string.

        Args:
            t: now [s].
            x: TCP position (3,) [m], base frame.
            contact_force: (3,) [N] ON the robot, base axes.
            observation: the estimate.
            active: whether the controller presses now.
        """
        force = float(self._normal @ contact_force)
        self._way.append((t, float(self._normal @ x), force))
        while len(self._way) > 2 and self._way[0][0] < t - self._limits.loss_window:
            self._way.popleft()
        pressed = self.pressed(contact_force)
        if active and pressed:
            self._made = True
            self.trail.append(x.copy())
        if not self._made:
            sunk = float(self._normal @ (self._begun_at - x))
            return f"none within {1e3 * sunk:.0f} mm" if sunk > self._limits.search_travel else ""
        return self._without_force(t, force, observation, pressed) or self._sinking(force)

    def _without_force(self, t: float, force: float, observation: Observation, pressed: bool) -> str:
        # A push that no contact of the observer explains, such as one from a steep slope, is still felt.
        is_open = not self.closed(observation) and not pressed
        low = is_open or force < self._limits.loss_force * self._wanted
        self._low_since = (t if self._low_since is None else self._low_since) if low else None
        if self._low_since is None or t - self._low_since < self._limits.loss_time:
            return ""
        return "it is open" if is_open else f"its force is {force:.1f} N of {self._wanted:g} N"

    def _sinking(self, force: float) -> str:
        limits, (first, before, strong), (last, here, _) = self._limits, self._way[0], self._way[-1]
        sunk, most, fall = before - here, limits.loss_speed * limits.loss_window, (strong - force) / self._wanted
        falling = sunk > 2.0 * most or (sunk > most and fall > limits.loss_fall)
        if falling and last - first >= 0.5 * limits.loss_window:
            return f"the tool sinks by {1e3 * sunk:.0f} mm in {1e3 * (last - first):.0f} ms at {force:.1f} N"
        return ""
