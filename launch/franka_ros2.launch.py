"""Estimators beside franka_ros2: bringup with driver:=none.

    ros2 launch franka_bringup franka.launch.py robot_type:=fr3 robot_ip:=172.16.0.3
    ros2 launch contact_estimation franka_ros2.launch.py robot:=fr3

The joint states at full rate, with the link-side torque (gravity inside) as effort, are on franka/joint_states; what
franka_ros2 publishes on joint_states is thinned out to 30 Hz. Its arm_prefix and '_' are this launch's tf_prefix.
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
        for a in bringup.arguments("franka_ros2")
    ]
    source = PythonLaunchDescriptionSource(str(Path(__file__).with_name("bringup.launch.py")))
    return LaunchDescription([*declared, IncludeLaunchDescription(source)])
