"""Contact controllers by name, for the node and the command line."""

from __future__ import annotations

from collections.abc import Callable

from contact_estimation.control.controller import ContactController
from contact_estimation.control.feedforward import FeedforwardController
from contact_estimation.control.force_admittance import ForceAdmittanceController
from contact_estimation.control.mpc.controller import MpcController
from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.pi import PiController
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm

_PLAIN: dict[str, Callable[[Arm, MpcSettings, bool], ContactController]] = {
    "feedforward": FeedforwardController,
    "pi": PiController,
    "admittance": ForceAdmittanceController,
}
#: Words of ``controller:=`` and ``--controller``.
CONTROLLERS = ("mpc", *_PLAIN)


def make_controller(
    name: str,
    arm: Arm,
    settings: MpcSettings,
    solver: str | None = None,
    adapt: bool = True,
    deadline: float | None = None,
) -> ContactController:
    """Return the controller ``name`` of a task.

    Args:
        name: one of :data:`CONTROLLERS`.
        arm: the robot.
        settings: the task.
        solver: of the MPC, default the task's.
        adapt: take contacts and force from the estimates.
        deadline: of the MPC's solves [s], default the task's.

    Raises:
        ConfigError: unknown name.
    """
    if name == "mpc":
        return MpcController(arm, settings, solver, adapt=adapt, deadline=deadline)
    if name not in _PLAIN:
        raise ConfigError(f"controller is '{name}'; choose one of {', '.join(CONTROLLERS)}")
    return _PLAIN[name](arm, settings, adapt)
