"""The arm: description, symbolic dynamics, motor side."""

from contact_estimation.robot.arm import Arm, load_arm
from contact_estimation.robot.settings import RobotSettings, load_robot_settings

__all__ = ["Arm", "RobotSettings", "load_arm", "load_robot_settings"]
