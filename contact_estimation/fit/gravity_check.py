"""Whether the torque that a fit left constant looks like gravity: a wrong scale, sign, load or robot.

A fit takes a constant torque b of every joint for a sensor's offset. Told the wrong torque scale, it would call the
missing gravity an offset, and the stiffness would be off by the scale. Over the joints, b = s G(q) has s near zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

_SCALE = 0.2  # share of gravity in the offsets that is let pass, as in a calibration
_SIGN = 0.5  # share of one joint's gravity that is missing, from which its torque may have the other sign
_SHOWN = 0.02  # gravity over the effort limit from which a joint shows its sign


def gravity_doubts(arm: Arm, recordings: Sequence[Recording], bias: np.ndarray) -> list[str]:
    """Compare constant torques with gravity.

    Args:
        arm: the robot.
        recordings: R recordings.
        bias: (R, n) constant torque of each [Nm].

    Returns:
        A sentence for each thing that is wrong; empty if nothing is.
    """
    doubts = []
    for recording, offset in zip(recordings, bias):
        gravity = arm.gravity(np.median(recording.q, axis=0))
        shows = np.abs(gravity) > _SHOWN * arm.effort_limit
        turned = np.flatnonzero(shows & (offset * np.sign(gravity) < -_SIGN * np.abs(gravity)))
        share = float(offset @ gravity / max(gravity @ gravity, 1e-12))
        if len(turned):
            j = int(turned[0])
            doubts.append(
                f"{recording.source}: the torque of {arm.joint_names[j]} contradicts gravity ({offset[j]:.3g} Nm "
                f"beside {gravity[j]:.3g} Nm): its sign is reversed, or the robot is another"
            )
        elif shows.any() and abs(share) > _SCALE:
            doubts.append(
                f"{recording.source}: the torque is {1.0 + share:.2f} times the gravity of robot '{arm.name}': a load "
                "that is not configured (--tool), a wrong torque_scale (it scales the stiffness, too), or another robot"
            )
    return doubts
