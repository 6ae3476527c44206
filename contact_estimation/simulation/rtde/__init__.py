"""A UR controller on loopback: speaks RTDE, and what the control client needs of the dashboard and the script port."""
