"""Two copies of a state that take turns."""

import numpy as np
import pytest

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_function, named_function, symbols
from contact_estimation.exceptions import CodegenError


@pytest.fixture(scope="module")
def counter():
    """x+ = x + u, y+ = y + x, with the result x + y."""
    s = symbols(x=2, y=2, u=2)
    return compile_function(
        named_function("counter", s, {"x_next": s.x + s.u, "y_next": s.y + s.x, "total": s.x + s.y})
    )


def test_every_result_is_the_next_argument(counter):
    state = DoubleBuffer.of(counter)
    step = bind_recursion(counter, [state])
    counter.inputs["u"][:] = (1.0, 2.0)
    for _ in range(4):
        step()
    np.testing.assert_array_equal(state["x"], [4.0, 8.0])
    np.testing.assert_array_equal(state["y"], [6.0, 12.0])
    np.testing.assert_array_equal(counter.outputs["total"], [3.0 + 3.0, 6.0 + 6.0])


def test_functions_share_a_state_and_its_turn(counter):
    s = symbols(x=2, y=2)
    swap = compile_function(named_function("swap", s, {"x_next": s.y, "y_next": s.x}))
    state = DoubleBuffer.of(counter)
    step, exchange = bind_recursion(counter, [state]), bind_recursion(swap, [state])
    counter.inputs["u"][:] = 1.0
    for call in (step, step, exchange, step):
        call()
    np.testing.assert_array_equal(state["x"], 2.0)
    np.testing.assert_array_equal(state["y"], 3.0)


def test_a_function_that_only_reads_flips_nothing_and_follows_all_turns(counter):
    s = symbols(x=2, z=1)
    read = compile_function(named_function("read", s, {"seen": s.x + s.z}))
    grow = symbols(z=1)
    other = compile_function(named_function("grow", grow, {"z_next": grow.z + 10.0}))
    state, further = DoubleBuffer.of(counter), DoubleBuffer(z=1)
    step, look = bind_recursion(counter, [state]), bind_recursion(read, [state, further])
    more = bind_recursion(other, [further])
    counter.inputs["u"][:] = 1.0
    seen = []
    for call in (step, more, step, step, more):
        call()
        look()
        seen.append(read.outputs["seen"][0])
    assert seen == [1.0, 11.0, 12.0, 13.0, 23.0]


def test_results_go_where_they_are_told(counter):
    state, total = DoubleBuffer.of(counter), np.zeros(2)
    counter.outputs["total"][:] = -1.0
    bind_recursion(counter, [state], {"u": np.ones(2), "total": total})()
    np.testing.assert_array_equal(state["x"], 1.0)
    np.testing.assert_array_equal(total, 0.0)
    np.testing.assert_array_equal(counter.outputs["total"], -1.0)


def test_a_state_that_is_written_in_part_is_refused(counter):
    with pytest.raises(CodegenError, match=r"counter.* must write all of x, y, z or none"):
        bind_recursion(counter, [DoubleBuffer(x=2, y=2, z=1)])
