"""A contact law of one's own for the tests: a pad that pulls until 3 mm of clearance, then lets go."""

import numpy as np

from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.settings import to_mapping

#: The file as somebody outside the package would write it.
ADHESIVE = """
import casadi as ca
from contact_estimation.contact import LawParameter


class Adhesive:
    parameters = (LawParameter(name="reach", unit="m", scale=1e-3, mean=3e-3, std=3e-4),)
    feels_slip = False
    opens = True

    def force(self, stiffness, depth, slip, parameters):
        attached = 0.5 * (1 + ca.tanh(0.5 * (depth + parameters[0]) / 5e-5))
        return stiffness * depth * attached, 0 * slip

"""


def adhesive_force(stiffness: float, depth: np.ndarray) -> np.ndarray:
    """Force of the pad [N] at ``depth`` [m], in numpy."""
    return stiffness * depth * 0.5 * (1 + np.tanh(0.5 * (depth + 3e-3) / 5e-5))


def adhesive_observer(law: str, rest) -> dict:
    """The shipped EKF with the contact law ``law`` of a surface at ``rest`` (3,) or ``start``, without friction."""
    mapping = to_mapping(load_observer_settings("ekf"))
    place = rest if isinstance(rest, str) else [float(v) for v in rest]
    mapping["contacts"][0] |= {"law": law, "rest": place, "stiffness": [0.0, 0.0, 1.5e4]}
    mapping["process_noise"] |= {"unknown_torque": 0.5, "unknown_torque_share": 0.0}
    return mapping | {"sensors": "joint_torque"}
