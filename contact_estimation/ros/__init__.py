"""Conversion between ROS messages and numpy; only this layer and ``nodes`` import rclpy."""
