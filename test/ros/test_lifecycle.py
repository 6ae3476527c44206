"""Every lifecycle request in every state is answered, and ends nothing."""

from __future__ import annotations

import pytest
import rclpy
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import TransitionCallbackReturn

from contact_estimation.ros.lifecycle import ManagedNode

UNCONFIGURED, INACTIVE = State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_INACTIVE
ACTIVE, FINALIZED = State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_FINALIZED
CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
#: Transitions -> (state they begin in, state they end in).
ALLOWED = {
    CONFIGURE: (UNCONFIGURED, INACTIVE),
    Transition.TRANSITION_CLEANUP: (INACTIVE, UNCONFIGURED),
    ACTIVATE: (INACTIVE, ACTIVE),
    Transition.TRANSITION_DEACTIVATE: (ACTIVE, INACTIVE),
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: (UNCONFIGURED, FINALIZED),
    Transition.TRANSITION_INACTIVE_SHUTDOWN: (INACTIVE, FINALIZED),
    Transition.TRANSITION_ACTIVE_SHUTDOWN: (ACTIVE, FINALIZED),
}
WAY = {UNCONFIGURED: (), INACTIVE: (CONFIGURE,), ACTIVE: (CONFIGURE, ACTIVATE)}


class Fragile(ManagedNode):
    """A node whose cleanup has a defect."""

    def on_cleanup(self, state):
        raise ValueError("a defect")


@pytest.fixture
def make():
    context = rclpy.Context()
    rclpy.init(context=context)
    nodes = []

    def make(cls=ManagedNode):
        nodes.append(cls("managed", context=context))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


def ask(node, number: int, label: str = "") -> bool:
    """Send a request as the service does; returns its success."""
    request = ChangeState.Request(transition=Transition(id=number, label=label))
    return node._LifecycleNodeMixin__on_change_state(request, ChangeState.Response()).success


@pytest.mark.parametrize("state", list(WAY))
def test_every_request_in_every_state_is_answered(make, state):
    for number in [*range(11), *range(60, 63), 97, 98, 99, 255]:
        node = make()
        for step in WAY[state]:
            assert ask(node, step)
        begin, end = ALLOWED.get(number, (None, None))
        assert ask(node, number) == (begin == state)
        assert node._state_machine.current_state[0] == (end if begin == state else state)
    assert not ask(node, 0, "no such transition")


def test_a_defect_in_a_transition_is_an_answer(make):
    node = make(Fragile)
    assert ask(node, CONFIGURE)
    assert not ask(node, Transition.TRANSITION_CLEANUP)
    assert node._state_machine.current_state[0] == UNCONFIGURED
    assert node.trigger_activate() is TransitionCallbackReturn.FAILURE


@pytest.mark.parametrize("node, given", [("driver", {"driver": "simulated", "duration": 600.0}), ("mpc", {})])
def test_a_running_node_refuses_what_its_state_has_not(graph, node, given):
    with graph.start(node, given) as process:
        for state, step in ((UNCONFIGURED, None), (INACTIVE, CONFIGURE)):
            assert step is None or graph.change(node, step), process.text()
            for number in (0, *ALLOWED, 9, 10, 60, 97, 255):
                if ALLOWED.get(number, (None,))[0] != state or number == ACTIVATE:  # no estimate comes in
                    request = ChangeState.Request(transition=Transition(id=number))
                    assert not graph.call(ChangeState, f"/{node}/change_state", request).success
            assert graph.state(node) == state
        assert process.stop() == 0, process.text()


def test_a_destroyed_node_leaves_the_graph(make):
    """Its state machine must not keep the name there until the process ends: others may then keep it for good."""
    managed = make()
    watcher = rclpy.create_node("watcher", context=managed.context)
    assert sorted(watcher.get_node_names()) == ["managed", "watcher"]
    managed.destroy_node()
    assert watcher.get_node_names() == ["watcher"]
    watcher.destroy_node()
