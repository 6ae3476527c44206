"""Driver, estimators and, where asked for, MPC, recorder and RViz for one arm.

    ros2 launch contact_estimation bringup.launch.py robot:=ur16e driver:=simulated rviz:=true

Nothing is commanded by the launch alone: the driver and the MPC are lifecycle nodes, and commands pass once a person
has activated both (docs/ros.md). What is started is decided in contact_estimation.ros.bringup.
"""

import sys
import tempfile
from pathlib import Path

from launch.actions import DeclareLaunchArgument, EmitEvent, LogInfo, OpaqueFunction, TimerAction
from launch.events import Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.ros_adapters import get_ros_node

from contact_estimation.ros import bringup
from launch import LaunchDescription


def generate_launch_description():
    """Return the arguments of the table, then what they start."""
    declared = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.doc, choices=list(a.choices) or None)
        for a in bringup.arguments("bringup")
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def start(context):
    """Return the processes of the plan."""
    names = [argument.name for argument in bringup.ARGUMENTS]
    files = {f"{preset}.launch.py" for preset in bringup.PRESETS}
    if not files.isdisjoint(Path(word).name for word in sys.argv):  # else a launch file of the user's includes this one
        bringup.refuse_unknown(context.argv, names)
    plan = bringup.plan({name: context.launch_configurations[name] for name in names})
    actions = [process(plan, node) for node in plan.nodes]
    if plan.description_topic:
        get_ros_node(context)  # its discovery takes part of the five seconds
        actions.append(TimerAction(period=5.0, actions=[OpaqueFunction(function=describe, args=[plan])]))
    elif plan.description:
        actions.append(process(plan, plan.description))
    if plan.rviz_config:
        config = Path(tempfile.mkdtemp(prefix="rviz_")) / "contact.rviz"
        config.write_text(plan.rviz_config)
        actions.append(Node(package="rviz2", executable="rviz2", arguments=["-d", str(config)]))
    return actions


def process(plan, node):
    """Return the action that runs a planned node."""
    given = {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in node.parameters.items()
    }

    def ended(event, context):
        """End the launch with a vital process: well where that process was done, else with an error."""
        if context.is_shutdown or not node.vital:
            return None
        if node.finite and not event.returncode:
            return [EmitEvent(event=Shutdown(reason=f"{node.executable} is done"))]
        # A terminal's Ctrl-C may reach the process before the launch: then a shutdown follows, and cancels the timer.
        return [TimerAction(period=0.5, actions=[OpaqueFunction(function=fail, args=[event.returncode])])]

    def fail(context, code):
        """Fail the launch, unless it is ending anyway."""
        if not context.is_shutdown:
            raise RuntimeError(f"{node.executable} ended with exit code {code}")

    return Node(
        package=node.package,
        executable=node.executable,
        namespace=plan.namespace,
        parameters=[given, *([plan.params_file] if plan.params_file else [])],
        remappings=node.remappings,
        output="screen",
        on_exit=ended,
    )


def describe(context, plan):
    """Return robot_state_publisher, unless another one publishes the description."""
    if context.is_shutdown:
        return []
    if get_ros_node(context).count_publishers(plan.description_topic):
        return [LogInfo(msg=f"{plan.description_topic} is published already: robot_state_publisher is not started")]
    return [process(plan, plan.description)]
