"""Topics and message types a recording has in a bag."""

from __future__ import annotations

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
VECTOR = "geometry_msgs/msg/Vector3Stamped"
POINT = "geometry_msgs/msg/PointStamped"

#: Joint states of the arm: position [rad], velocity [rad/s], effort [Nm].
JOINT_STATES_TOPIC = "/joint_states"

#: Topics of a bag's joint states, the first that is there: franka_ros2 thins /joint_states out to 30 Hz.
JOINT_STATES_TOPICS = ("/franka/joint_states", JOINT_STATES_TOPIC)

#: Measured wrench of the environment on the robot, the name under which ros2_control publishes it.
WRENCH_TOPIC = "/force_torque_sensor_broadcaster/wrench"

#: One message: the sensor's reading in known free space.
WRENCH_ZERO_TOPIC = WRENCH_TOPIC + "_zero"

#: One message: the sensor set of config/sensors that says what the efforts in the joint states are.
TEXT = "std_msgs/msg/String"
SENSORS_TOPIC = "/sensor_set"

#: One message: the robot of config/robots that was recorded.
ROBOT_TOPIC = "/robot_name"

#: One message: the tool of config/tools behind the robot's flange.
TOOL_TOPIC = "/tool_name"

#: Truth of a simulation: name in ``Recording.truth`` -> (topic, message type).
TRUTH_TOPICS = {
    "wrench_tcp": ("/truth/external_wrench", WRENCH),
    "stiffness": ("/truth/stiffness", VECTOR),
    "rest": ("/truth/rest", POINT),
    "contact_point": ("/truth/contact_point", POINT),
    "tau_ext": ("/truth/external_joint_torques", JOINT_STATE),
}
