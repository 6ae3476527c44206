"""The service ``~/zero`` of the estimator over real DDS: what a contact does to the torque is no offset."""

import arm_samples as samples
import numpy as np
from contact_estimation.msg import ContactEstimate
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from contact_estimation.robot import load_arm
from contact_estimation.robot.posture import ready_posture
from contact_estimation.ros import convert, qos


def test_zero_in_a_press_is_refused_and_says_what_to_do(graph):
    """The torque of a contact is no offset; an arm that is known to be free is zeroed by a parameter."""
    arm = load_arm("fr3")
    q, stamp, push, pushed = ready_posture(arm), samples.START_NS, 0.0, 0.0
    gravity, rng = arm.gravity(q), np.random.default_rng(0)
    sideways = arm.tcp_jacobian(q)[0]  # a push from below becomes the configured contact within 30 ms
    estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
    publisher = graph.node.create_publisher(JointState, "/joint_states", qos.VISUALIZATION)

    def feed() -> None:
        nonlocal stamp, pushed
        stamp, pushed = stamp + samples.PERIOD_NS, pushed + float(np.clip(push - pushed, -0.4, 0.4))
        dq, tau = rng.normal(0.0, 1e-4, arm.n), gravity - sideways * pushed + rng.normal(0.0, 0.05, arm.n)
        publisher.publish(convert.joint_state(convert.header(stamp, ""), arm.joint_names, q, dq, tau))

    def zero() -> Trigger.Response:
        return graph.call(Trigger, "/estimator/zero")

    with graph.start("estimator", {"robot": "fr3", "observer": "contact_imm", "max_age": 0.0}) as process:
        with graph.meanwhile(feed):
            assert graph.spin(lambda: len(estimates) > 500 and estimates[-1].mode == "free"), process.text()
            assert zero().success
            push = 20.0
            assert graph.spin(lambda: estimates[-1].mode == "unknown"), process.text()
            answer = zero()
            assert not answer.success and "a contact is probable ('unknown'" in answer.message, answer
            assert "Free the arm and zero again" in answer.message and "zero_in_contact" in answer.message
            value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
            request = SetParameters.Request(parameters=[Parameter(name="zero_in_contact", value=value)])
            assert graph.call(SetParameters, "/estimator/set_parameters", request).results[0].successful
            assert zero().success
        assert process.stop() == 0, process.text()
