"""ROS parameters <-> settings dataclasses, which declare, document and validate; unknown keys are refused."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node

from contact_estimation import settings
from contact_estimation.exceptions import ConfigError

T = TypeVar("T")
#: Parameters every node has from ROS itself.
_OWN = ("use_sim_time", "start_type_description_service", "qos_overrides")


def declare(node: Node, cls: type[T], defaults: dict[str, Any] | None = None) -> T:
    """Declare every key of the settings class ``cls`` as a parameter and return the settings, overrides applied.

    The node must have been made with ``automatically_declare_parameters_from_overrides=True``: overrides that ``cls``
    does not declare are then visible here, and refused. ``defaults`` replaces defaults of ``cls`` for this node.

    Raises:
        ConfigError: unknown parameter (the nearest known one is named), wrong type, value out of range.
    """
    given = {
        name: parameter.value
        for name, parameter in node.get_parameters_by_prefix("").items()
        if name.split(".")[0] not in _OWN
    }
    files = _files(sys.argv)
    source = f"parameters of node {node.get_fully_qualified_name()}" + (f" ({', '.join(files)})" if files else "")
    loaded = settings.from_mapping(cls, {**(defaults or {}), **given}, source)
    for field in dataclasses.fields(cast("Any", cls)):
        descriptor = ParameterDescriptor(description=_description(field), dynamic_typing=True)
        if not node.has_parameter(field.name):
            node.declare_parameter(field.name, getattr(loaded, field.name), descriptor)
        else:
            node.set_descriptor(field.name, descriptor)
    return loaded


def accept_changes(node: Node, cls: type[T], live: set[str], apply: Callable[[T], None] = lambda _: None) -> None:
    """Let the parameters in ``live`` be changed while the node runs; refuse the others with the reason.

    ``apply(settings)`` gets the whole validated settings object.
    """

    def on_change(parameters: list[Any]) -> SetParametersResult:
        changed = {parameter.name: parameter.value for parameter in parameters}
        # Another clock would stop a loop that commands: use_sim_time is fixed, too.
        fixed = sorted(set(changed) - live)
        if fixed:
            return SetParametersResult(
                successful=False,
                reason=f"{', '.join(fixed)} cannot change while the node runs: "
                f"restart it. Changeable: {', '.join(sorted(live)) or 'none'}",
            )
        current = {field.name: node.get_parameter(field.name).value for field in dataclasses.fields(cast("Any", cls))}
        try:
            apply(settings.from_mapping(cls, {**current, **changed}, "parameter change"))
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_change)


def _files(command_line: Sequence[str]) -> list[str]:
    """List the user's parameter files of a command line; a launch adds temporary ones of its own."""
    given = [value for word, value in itertools.pairwise(command_line) if word == "--params-file"]
    return [file for file in given if not Path(file).name.startswith("launch_params_")]


def _description(field: dataclasses.Field[Any]) -> str:
    unit = field.metadata.get("unit")
    return str(field.metadata["doc"]) + (f" [{unit}]" if unit else "")
