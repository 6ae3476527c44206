"""A recording through estimator and baseline.

    ros2 launch contact_estimation replay.launch.py recording:=/path/to/bag robot:=ur16e rviz:=true
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

SHARE = Path(get_package_share_directory("contact_estimation"))


def shipped(kind):
    """Names of the configurations in config/<kind>."""
    return sorted(path.stem for path in (SHARE / "config" / kind).glob("*.yaml"))


def generate_launch_description():
    """bringup with driver:=replay."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("recording", description="rosbag2 or .npz to play"),
            DeclareLaunchArgument("robot", default_value="ur16e", choices=shipped("robots"), description="the arm"),
            DeclareLaunchArgument(
                "observer", default_value="contact_bank", choices=shipped("observers"), description="the estimator's observer"
            ),
            DeclareLaunchArgument(
                "sensors",
                default_value="",
                choices=["", *shipped("sensors")],
                description="sensor set of config/sensors; empty: the observer's or robot's own",
            ),
            DeclareLaunchArgument(
                "loop", default_value="false", choices=["true", "false"], description="play over and over"
            ),
            DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"], description="start RViz"),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / "launch" / "bringup.launch.py")),
                launch_arguments={
                    "driver": "replay",
                    "recording": LaunchConfiguration("recording"),
                    "robot": LaunchConfiguration("robot"),
                    "observer": LaunchConfiguration("observer"),
                    "sensors": LaunchConfiguration("sensors"),
                    "loop": LaunchConfiguration("loop"),
                    "rviz": LaunchConfiguration("rviz"),
                }.items(),
            ),
        ]
    )
