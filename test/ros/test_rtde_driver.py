"""The driver node on a UR controller that closes its connection, or stops the arm for safety."""

from __future__ import annotations

from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State
from rtde_controller import HOST, Controller, require_client_library
from sensor_msgs.msg import JointState
from test_driver import ACTIVATE, CLEANUP, CONFIGURE, activate, good_estimate, patient_limits

from contact_estimation.robot import load_arm
from contact_estimation.ros import qos
from contact_estimation.ros.driver import ProblemLog


def test_the_log_tells_each_kind_of_problem_once_and_its_end():
    now = 0.0
    log = ProblemLog(lambda: now)
    assert log.ended() == "" and log.warning("") == ""
    assert log.warning("240 ms behind") == "240 ms behind"
    now = 0.5
    assert log.warning("the reader is behind") and log.warning("251 ms behind") == ""
    now = 1.4
    assert log.ended() == "", "it may come again"
    now = 1.6
    assert log.ended() == "samples flow, after 0.5 s with a problem" and log.ended() == ""
    assert log.warning("240 ms behind"), "a new one"


def test_the_node_says_why_it_stopped_and_when_commands_work_again(graph, tmp_path):
    """Connection closed for longer than the deadman waits; then a protective stop that is unlocked."""
    require_client_library()
    arm = load_arm("ur16e")
    states = graph.watch(JointState, "/joint_states")
    health = graph.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
    estimates = graph.node.create_publisher(ContactEstimate, "estimator/contact_estimate", qos.SENSOR)
    told: set[tuple[bytes, str]] = set()

    def feed() -> None:
        if states:
            estimates.publish(good_estimate(arm, states[-1].header.stamp))

    def says(words: str, level: bytes) -> bool:
        told.update((s.level, s.message) for m in health for s in m.status if s.name.startswith("driver"))
        return any(found == level and words in message for found, message in told)

    parameters = {"driver": "rtde", "host": HOST, "control": True, "safety": patient_limits(tmp_path)}
    parameters["options"] = "{command_timeout: 2.0, connect_timeout: 120.0}"
    with Controller() as controller, graph.start("driver", parameters) as driver, graph.meanwhile(feed, 0.01):
        assert graph.change("driver", CONFIGURE), driver.text()
        activate(graph)
        controller.say("drop 8")
        inactive = lambda: graph.state("driver") == State.PRIMARY_STATE_INACTIVE  # noqa: E731
        assert graph.spin(inactive), driver.text()
        assert graph.spin(lambda: says("no sample for more than 0.1 s", DiagnosticStatus.ERROR)), told
        assert "deactivated: the connection was lost" in driver.text(), driver.text()
        assert graph.spin(lambda: says("connection was lost: configure", DiagnosticStatus.WARN)), told
        assert not graph.change("driver", ACTIVATE), "the control program has ended"
        again = lambda: graph.change("driver", CLEANUP) and graph.change("driver", CONFIGURE)  # noqa: E731
        assert again(), driver.text()
        assert graph.spin(lambda: "samples flow, after" in driver.text()), driver.text()
        activate(graph)

        controller.say("protective_stop")  # nobody commands
        assert graph.spin(inactive), driver.text()
        assert "deactivated: safety mode is 'protective stop'" in driver.text(), driver.text()
        assert graph.spin(lambda: says("safety mode is 'protective stop'", DiagnosticStatus.WARN)), told
        controller.say("unlock")
        assert graph.spin(lambda: says("configure the driver again", DiagnosticStatus.WARN)), told
        assert not graph.change("driver", ACTIVATE), "the control program has ended"
        assert again(), driver.text()
        activate(graph)
        assert driver.stop() == 0, driver.text()
