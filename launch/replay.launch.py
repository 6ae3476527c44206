"""A recording through estimator and baseline: bringup with driver:=replay.

    ros2 launch contact_estimation replay.launch.py bag:=/path/to/bag rviz:=true

It ends with the recording; loop:=true plays it over and over.
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
        for a in bringup.arguments("replay")
    ]
    source = PythonLaunchDescriptionSource(str(Path(__file__).with_name("bringup.launch.py")))
    return LaunchDescription([*declared, IncludeLaunchDescription(source)])
