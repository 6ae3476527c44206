"""Driver, estimator and baseline for one arm, with the MPC and RViz if wanted.

    ros2 launch contact_estimation bringup.launch.py robot:=ur16e driver:=simulated rviz:=true
    ros2 launch contact_estimation bringup.launch.py robot:=fr3 driver:=sim scenario:=plane mpc:=true

Nothing is commanded by the launch alone: the driver and the MPC are lifecycle nodes, and commands pass once a person
has activated both (docs/ros.md).
"""

from pathlib import Path
from typing import List

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(get_package_share_directory("contact_estimation"))


def shipped(kind):
    """Names of the configurations in config/<kind>."""
    return sorted(path.stem for path in (SHARE / "config" / kind).glob("*.yaml"))


def generate_launch_description():
    """Arguments, then nodes."""
    robot, driver, observer = (
        LaunchConfiguration("robot"),
        LaunchConfiguration("driver"),
        LaunchConfiguration("observer"),
    )
    sensors = ParameterValue(LaunchConfiguration("sensors"), value_type=str)
    frames = {name: yaml.safe_load((SHARE / "config" / "robots" / f"{name}.yaml").read_text())["base_frame"]
              for name in shipped("robots")}
    together = LaunchConfiguration("one_process")
    # An arm has to follow the equilibrium with the stiffness the MPC plans with.
    planned = {path.stem: yaml.safe_load(path.read_text())["impedance"]["stiffness"]
               for path in (SHARE / "config" / "tasks").glob("mpc_*.yaml")}
    usual = "[1000.0, 1000.0, 1000.0]"

    def when(*conditions):
        """Condition that all of these Python expressions, made of strings and substitutions, hold."""
        parts = []
        for condition in conditions:
            parts += [" and (" if parts else "(", *condition, ")"]
        return IfCondition(PythonExpression(parts))

    simulated, replayed = ["'", driver, "' == 'simulated'"], ["'", driver, "' == 'replay'"]
    # Only drivers without hardware behind them run in the estimator's process.
    joined = ["'", together, "' == 'true' and '", driver, "' in ('simulated', 'replay')"]
    apart = ["not (", *joined, ")"]
    recording = ParameterValue(LaunchConfiguration("recording"), value_type=str)
    replay_driver = Node(package="contact_estimation", executable="replay_driver", output="screen",
                         parameters=[{"robot": robot, "recording": recording, "loop": LaunchConfiguration("loop")}],
                         condition=when(replayed, apart))
    simulated_driver = Node(package="contact_estimation", executable="simulated_driver", output="screen",
                            parameters=[{"robot": robot, "duration": LaunchConfiguration("duration")}],
                            condition=when(simulated, apart))
    robot_driver = Node(
        package="contact_estimation",
        executable="driver",
        output="screen",
        parameters=[
            {
                "robot": robot,
                "driver": driver,
                "scenario": LaunchConfiguration("scenario"),
                "duration": ParameterValue(LaunchConfiguration("duration"), value_type=float),
                "imperfections": ParameterValue(LaunchConfiguration("imperfections"), value_type=str),
                "host": ParameterValue(LaunchConfiguration("host"), value_type=str),
                "control": LaunchConfiguration("control"),
                "safety": ParameterValue(LaunchConfiguration("limits"), value_type=str),
                "impedance_stiffness": ParameterValue(
                    LaunchConfiguration("impedance_stiffness"), value_type=List[float]
                ),
                "admittance_damping": ParameterValue(LaunchConfiguration("admittance_damping"), value_type=float),
                "torque_meaning": LaunchConfiguration("torque_meaning"),
                "joint_states_in": LaunchConfiguration("joint_states_in"),
            }
        ],
        condition=when(["'", driver, "' in ('sim', 'rtde', 'joint_torque', 'franka')"]),
    )
    combined = Node(
        package="contact_estimation",
        executable="combined",
        output="screen",
        parameters=[
            {
                "robot": robot,
                "driver": driver,
                "observer": observer,
                "sensors": sensors,
                "recording": recording,
                "loop": LaunchConfiguration("loop"),
                "duration": LaunchConfiguration("duration"),
                "arrow_scale": LaunchConfiguration("arrow_scale"),
            }
        ],
        condition=when(joined),
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument("robot", default_value="ur16e", choices=shipped("robots"), description="the arm"),
            DeclareLaunchArgument(
                "driver",
                default_value="simulated",
                choices=["sim", "rtde", "joint_torque", "franka", "replay", "simulated", "none"],
                description="source of joint_states; none: your robot's own driver publishes them",
            ),
            DeclareLaunchArgument("scenario", default_value="linear_contact", description="scenario for driver:=sim"),
            DeclareLaunchArgument(
                "imperfections",
                default_value="",
                description="sensors and joints for driver:=sim, by name or path; empty: the robot's own",
            ),
            DeclareLaunchArgument(
                "host", default_value="127.0.0.1", description="address of the controller for driver:=rtde and franka"
            ),
            DeclareLaunchArgument(
                "control",
                default_value="false",
                choices=["true", "false"],
                description="driver:=rtde also opens the control interface",
            ),
            DeclareLaunchArgument(
                "torque_meaning",
                default_value="total",
                choices=["total", "gravity_compensated", "external"],
                description="what the effort of a joint-torque arm is",
            ),
            DeclareLaunchArgument(
                "joint_states_in",
                default_value="franka/joint_states",
                description="topic of the joint-torque arm's own driver",
            ),
            DeclareLaunchArgument(
                "mpc",
                default_value="false",
                choices=["true", "false"],
                description="start the MPC; it commands once it and the driver are activated",
            ),
            DeclareLaunchArgument(
                "task",
                default_value=PythonExpression(["'mpc_plane_", robot, "'"]),
                description="MPC task of config/tasks, or path of a YAML",
            ),
            DeclareLaunchArgument(
                "limits",
                default_value="",
                description="limits of the commands, of config/limits or a path; empty: the defaults",
            ),
            DeclareLaunchArgument(
                "impedance_stiffness",
                default_value=PythonExpression(
                    [f"{planned}.get('", LaunchConfiguration("task"), "', ", usual, ") if '",
                     LaunchConfiguration("mpc"), "' == 'true' else ", usual]
                ),
                description="stiffness the equilibrium is followed with [N/m]; with the MPC that of its task",
            ),
            DeclareLaunchArgument(
                "admittance_damping",
                default_value="4000.0",
                description="force per speed of a position-controlled arm that realises it [Ns/m]",
            ),
            DeclareLaunchArgument(
                "observer",
                default_value="contact_bank",
                choices=shipped("observers"),
                description="the estimator's observer; with the MPC one whose contacts have the task's names",
            ),
            DeclareLaunchArgument(
                "sensors",
                description="sensor set of config/sensors; empty: the observer's or robot's own",
                default_value=PythonExpression(
                    ["'joint_torque' if '", driver, "' == 'simulated' else 'ur16e_driver' if '", driver,
                     "' in ('sim', 'rtde') and '", robot, "' == 'ur16e' else ''"]
                ),
                choices=["", *shipped("sensors")],
            ),
            DeclareLaunchArgument(
                "baseline",
                default_value="true",
                choices=["true", "false"],
                description="run the momentum observer beside the estimator",
            ),
            DeclareLaunchArgument(
                "one_process",
                default_value="false",
                choices=["true", "false"],
                description="driver (simulated or replay) and estimator in one process, no DDS in between",
            ),
            DeclareLaunchArgument("recording", default_value="", description="rosbag2 or .npz for driver:=replay"),
            DeclareLaunchArgument(
                "loop", default_value="false", choices=["true", "false"], description="replay over and over"
            ),
            DeclareLaunchArgument("duration", default_value="60.0", description="length of the simulation [s]"),
            DeclareLaunchArgument("arrow_scale", default_value="0.003", description="length of the force arrow [m/N]"),
            DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"], description="start RViz"),
            replay_driver,
            simulated_driver,
            robot_driver,
            combined,
            Node(
                package="contact_estimation",
                executable="estimator",
                output="screen",
                parameters=[
                    {
                        "robot": robot,
                        "observer": observer,
                        "sensors": sensors,
                        "arrow_scale": LaunchConfiguration("arrow_scale"),
                    }
                ],
                condition=when(apart),
            ),
            Node(
                package="contact_estimation",
                executable="momentum_observer",
                output="screen",
                parameters=[{"robot": robot, "sensors": sensors}],
                condition=when(["'", LaunchConfiguration("baseline"), "' == 'true'"]),
            ),
            Node(
                package="contact_estimation",
                executable="mpc",
                output="screen",
                parameters=[{"robot": robot, "task": ParameterValue(LaunchConfiguration("task"), value_type=str)}],
                remappings=[("mpc/equilibrium_pose", "equilibrium_pose")],
                condition=IfCondition(LaunchConfiguration("mpc")),
            ),
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                parameters=[
                    {
                        "robot_description": ParameterValue(
                            Command(["cat ", PathJoinSubstitution([str(SHARE), "urdf", [robot, ".urdf"]])]),
                            value_type=str,
                        )
                    }
                ],
            ),
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=[
                    "-d",
                    str(SHARE / "rviz" / "contact.rviz"),
                    "-f",
                    PythonExpression([repr(frames), "['", robot, "']"]),
                ],
                condition=IfCondition(LaunchConfiguration("rviz")),
            ),
            *(
                RegisterEventHandler(
                    OnProcessExit(target_action=node, on_exit=[EmitEvent(event=Shutdown(reason="the driver ended"))])
                )
                for node in (replay_driver, simulated_driver, robot_driver, combined)
            ),
        ]
    )
