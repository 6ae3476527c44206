"""A lifecycle node that answers every request; a request that a state does not allow fails and stops nothing."""

from __future__ import annotations

import traceback
from typing import Any

from lifecycle_msgs.msg import Transition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, State, TransitionCallbackReturn


class ManagedNode(LifecycleNode):
    """A :class:`rclpy.lifecycle.LifecycleNode` whose own defects and other nodes' mistakes do not end the process.

    rclpy raises out of the executor where a transition is asked for that the present state does not have, and drops
    the exception of a transition's callback. Here the first is refused and the second is logged. Both methods are
    private ones of rclpy; ``test/ros/test_lifecycle.py`` fails where another version calls them otherwise.
    """

    def _LifecycleNodeMixin__change_state(self, transition_id: int) -> TransitionCallbackReturn:
        try:
            return super()._LifecycleNodeMixin__change_state(transition_id)
        except rclpy_implementation.RCLError:
            state = self._state_machine.current_state[1]
            known = {
                t[0]: t[1] for t in self._state_machine.available_transitions if t[0] < Transition.TRANSITION_DESTROY
            }
            self.get_logger().error(
                f"there is no transition {transition_id} from state '{state}'; there is "
                + (", ".join(f"{name} ({number})" for number, name in sorted(known.items())) or "none")
            )
            return TransitionCallbackReturn.FAILURE

    def _LifecycleNodeMixin__execute_callback(self, state_id: int, previous: State) -> TransitionCallbackReturn:
        callback = self._callbacks.get(state_id)
        if callback is None:
            return TransitionCallbackReturn.SUCCESS
        try:
            result: Any = callback(previous)
        except Exception as error:
            self.get_logger().error(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
            return TransitionCallbackReturn.ERROR
        return result

    def destroy_node(self) -> None:
        """Leave the graph; rclpy keeps the state machine, and with it the node's name until the process ends."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()
