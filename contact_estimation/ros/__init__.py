"""Between ROS messages and numpy; the only rooms that import rclpy are this one and nodes."""
