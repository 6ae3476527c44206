"""Signals to a node, beside what the tests of the graph send to whole processes."""

from __future__ import annotations

import contextlib
import io
import sys
import threading

import pytest
import rclpy
from rclpy.node import Node

from contact_estimation.exceptions import ConfigError
from contact_estimation.ros import executor
from contact_estimation.ros.executor import Interrupts, run
from contact_estimation.ros.lifecycle import ManagedNode


def test_a_signal_may_come_anywhere_in_the_handler_of_another():
    """Ctrl-C under a launch comes twice. The handler of the second must not wait for what the first one holds."""
    interrupts, nested = Interrupts(), []

    def interrupt(frame, event, argument):
        if event == "line":
            nested.append(frame.f_lineno)
            interrupts()  # not traced itself
        return interrupt

    def handle():
        sys.settrace(interrupt)
        interrupts()

    thread = threading.Thread(target=handle, daemon=True)
    thread.start()
    thread.join(5.0)
    assert not thread.is_alive(), "the second signal waits for the first"
    assert interrupts.stop and nested


def test_a_start_is_interrupted_once():
    """The second signal of one Ctrl-C must not interrupt what tidies up."""
    interrupts = Interrupts()
    interrupts.starting = True
    with pytest.raises(KeyboardInterrupt):
        interrupts()
    interrupts()
    assert interrupts.stop


def test_a_finished_node_leaves_while_ros_still_tells_others():
    """Without a context no one hears that it leaves, and its name may stay in the graph."""
    told = []

    class Finished(Node):
        finished, exit_code = True, 3

        def destroy_node(self):
            told.append(rclpy.ok())
            super().destroy_node()

    assert run(lambda: Finished("finished"), []) == 3
    assert told == [True] and not rclpy.ok()


def test_what_goes_wrong_while_a_node_closes_is_its_exit_code():
    """As a recording whose end does not fit on the disk."""

    class Closing(Node):
        finished, exit_code = True, 0

        def close(self):
            self.exit_code = 2

    assert run(lambda: Closing("closing"), []) == 2


class Broken(ManagedNode):
    """A node whose start fails, as where a robot does not answer."""

    def __init__(self):
        super().__init__("broken")
        self._failure = ConfigError("it does not answer")
        raise self._failure


def test_a_node_whose_start_fails_leaves_before_its_participant(monkeypatch, capsys):
    gone = []

    def look():
        watcher = rclpy.create_node("watcher")
        gone.append("broken" not in watcher.get_node_names())
        watcher.destroy_node()

    monkeypatch.setattr(executor, "_say_farewell", look)
    assert run(Broken, []) == 2
    assert gone == [True] and "it does not answer" in capsys.readouterr().err


FILES = {"unclosed": b"/**:\n  ros__parameters:\n    robot: [unclosed\n", "latin": b"/**: \xff\n", "absent": None}


@pytest.mark.parametrize("name", FILES)
def test_parameters_that_cannot_be_read_end_a_node_with_an_error(name, tmp_path, capsys):
    """ROS itself only logs it."""
    file = tmp_path / f"{name}.yaml"
    if FILES[name] is not None:
        file.write_bytes(FILES[name])
    assert run(lambda: Node("unread"), ["--ros-args", "--params-file", str(file)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: Couldn't parse params file") and str(file) in said and ".c:" not in said


def test_an_empty_list_is_told():
    def make() -> Node:
        return Node("empty", automatically_declare_parameters_from_overrides=True)

    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert run(make, ["--ros-args", "-p", "topics:=[]"]) == 2
    assert said.getvalue().startswith("error: a parameter is an empty list") and said.getvalue().count("\n") == 1
