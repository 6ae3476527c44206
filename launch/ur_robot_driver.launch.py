"""Estimators beside ur_robot_driver: bringup with driver:=none.

    ros2 launch ur_robot_driver ur_control.launch.py ur_type:=ur16e robot_ip:=192.168.1.10 launch_rviz:=false
    ros2 launch contact_estimation ur_robot_driver.launch.py robot:=ur16e

That driver publishes motor currents [A] as effort on joint_states, at the rate of the controller, and the description;
nothing has to be renamed. A release that can publish torque instead needs use_currents_as_efforts:=true in the first
command. Its tf_prefix is this launch's tf_prefix.
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from contact_estimation.ros import bringup
from launch import LaunchDescription


def generate_launch_description():
    """Return bringup with other defaults."""
    declared = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.doc, choices=list(a.choices) or None)
        for a in bringup.arguments("ur_robot_driver")
    ]
    source = PythonLaunchDescriptionSource(str(Path(__file__).with_name("bringup.launch.py")))
    return LaunchDescription([*declared, IncludeLaunchDescription(source)])
