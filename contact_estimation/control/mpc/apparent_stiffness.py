"""The stiffness that force and motion show together, whatever an observer says of it.

A plan with a stiffness K far from the true one K_t rings. The rest of a pressed contact is told as r = x + F / K.
While the tool moves by dx, it moves by (1 - K_t / K) dx: with the tool where K is too high, against it where K is too
low. A plan that follows that motion takes the damping away. The more it rings, the better is K_t known. With x and F
without their means over ``_SLOW``, and averages over ``_WINDOW``:

    K_a = sqrt(<F^2> / <x^2>),   coherence c = <x F>^2 / (<x^2> <F^2>),  <x F> < 0

The ratio of amplitudes does not depend on a lag of the force; a surface that moves by itself is not coherent.
"""

from __future__ import annotations

import math

#: [s] What changes more slowly may be a motion of the surface.
_SLOW = 0.05
#: [s] Window of the averages: some periods of 5 Hz.
_WINDOW = 0.3
#: Coherence from which force and motion belong together: a force that lags by 63 degrees has a fifth.
_COHERENT = 0.2
#: The plan's stiffness may differ from what is shown by this factor: so much no loop minds.
_FACTOR = 3.0


class ApparentStiffness:
    """Bounds a stiffness along the wanted force by what force and motion show.

    Args:
        excitation: RMS of the force [N] from which its changes are more than noise.
    """

    def __init__(self, excitation: float) -> None:
        self._excitation = excitation
        self.restart()

    def restart(self) -> None:
        """Know of no contact."""
        self._last: tuple[float, float, float] | None = None  # time [s], mean height [m], mean force [N]
        self._xx = self._xf = self._ff = 0.0
        self._begun = 0.0  # [s]
        self._shown: float | None = None  # [N/m]

    def update(self, t: float, height: float, force: float) -> None:
        """Take a sample of a closed contact.

        Args:
            t: its time [s].
            height: of the point of the tool that touches, along the wanted force [m].
            force: along it [N].
        """
        if self._last is None:
            self._begun, self._last = t, (t, height, force)
        last, mean_height, mean_force = self._last
        step = max(t - last, 0.0)
        slow, share = step / (step + _SLOW), step / (step + _WINDOW)
        mean_height += slow * (height - mean_height)
        mean_force += slow * (force - mean_force)
        self._last = t, mean_height, mean_force
        if t - self._begun < _SLOW:  # the means are not known yet
            return
        x, f = height - mean_height, force - mean_force
        self._xx += share * (x * x - self._xx)
        self._xf += share * (x * f - self._xf)
        self._ff += share * (f * f - self._ff)
        if t - self._begun < 2.0 * _SLOW:
            return
        coherent = self._xf < 0.0 and self._xf**2 >= _COHERENT * self._xx * self._ff
        if coherent and self._ff > self._excitation**2:
            self._shown = math.sqrt(self._ff / self._xx)

    def bound(self, stiffness: float) -> float:
        """Return the nearest stiffness [N/m] that does not contradict what was shown.

        Args:
            stiffness: that an observer tells [N/m].
        """
        if self._shown is None:
            return stiffness
        return min(max(stiffness, self._shown / _FACTOR), self._shown * _FACTOR)
