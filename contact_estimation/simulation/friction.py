"""Joint friction with presliding: the LuGre model, vectorised over joints.

Canudas de Wit, Olsson, Astrom, Lischinsky, IEEE TAC 40(3), 1995, without the bristles' damping sigma1:
dz = dq - sigma0 |dq| z / g(dq), tau = sigma0 z + sigma2 dq, g(dq) = Fc + (Fs - Fc) exp(-(dq/vs)^2). The bristle is
integrated exactly over a step h of constant speed, so that it never exceeds g. The joint is still a mass M_jj on a
spring, stable for sigma0 h^2 < 4 M_jj; ``sensors/settings.py`` derives a presliding with which all joints are.
"""

from __future__ import annotations

import numpy as np


class LuGreFriction:
    """Friction torque opposing motion.

    Args:
        coulomb: Fc (n,) [Nm].
        static: Fs (n,) [Nm], at least Fc.
        stribeck_velocity: vs [rad/s].
        presliding: displacement in which the friction builds up, Fc / sigma0 [rad].
        viscous: (n,) [Nms/rad].
    """

    def __init__(
        self, coulomb: np.ndarray, static: np.ndarray, stribeck_velocity: float, presliding: float, viscous: np.ndarray
    ) -> None:
        self.coulomb = np.array(coulomb, float)
        # A joint without Coulomb friction has a level of 1 Nm, to divide by, which its bristle never approaches.
        self._level = np.where(self.coulomb > 0, self.coulomb, 1.0)
        self._break_away = np.where(self.coulomb > 0, np.maximum(static, coulomb) - self.coulomb, 0.0)
        self.viscous = np.array(viscous, float)
        self._vs, self._length = float(stribeck_velocity), float(presliding)
        #: Bristle force sigma0 z (n,) [Nm].
        self.bristle = np.zeros(len(self.coulomb))

    def torque(self, velocity: np.ndarray, step: float) -> np.ndarray:
        """Friction torque (n,) [Nm] after ``step`` [s] at ``velocity`` (n,) [rad/s], with the sign of the motion."""
        level = self._level + self._break_away * np.exp(-((velocity / self._vs) ** 2))
        speed = np.abs(velocity)
        # d(bristle) = sigma0 (dq - |dq| bristle / g): relaxes to g sign(dq) over a travel of presliding * g / Fc.
        decay = np.exp(-(step * speed * self.coulomb / (self._length * level)))
        self.bristle = np.sign(velocity) * level * (1.0 - decay) + self.bristle * decay
        return np.array(self.bristle + self.viscous * velocity)
