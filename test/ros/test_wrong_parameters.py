"""Wrong parameters end every node with one line that says what to give, and exit code 2."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

RECORDED = {"bag": "unused", "topics": ["/joint_states:sensor_msgs/msg/JointState"]}


#: Node, its parameters, and what it says.
WRONG = [
    ("estimator", {"robot": "ur16f"}, "there is no robot 'ur16f' (nearest: 'ur16e')"),
    ("estimator", {"robot": ""}, "there is no robot ''"),
    ("estimator", {"observer": "nope"}, "there is no observer 'nope'"),
    ("estimator", {"visualization_rate": -1.0}, "'visualization_rate' must be greater than 0, found -1.0 Hz"),
    ("momentum_observer", {"robot": 17}, "'robot' must be a word, found 17"),
    ("combined", {"robot": "ur16f"}, "there is no robot 'ur16f'"),
    ("driver", {"driver": "nope"}, "there is no driver 'nope'"),
    ("driver", {"rate": 0.0}, "'rate' must be greater than 0"),
    ("driver", {"driver": "joint_torque", "joint_states_in": "/joint_states"}, "give the node a namespace"),
    ("simulated_driver", {"scenario": "nope"}, "there is no task 'nope'"),
    ("replay_driver", {"recording": "/nowhere"}, "/nowhere: there is no such file or folder"),
    ("mpc", {"robot": "ur16f"}, "there is no robot 'ur16f'"),
    ("mpc", {"task": "nope"}, "there is no task 'nope'"),
    ("mpc", {"diagnostics_rate": -1.0}, "'diagnostics_rate' must be greater than 0"),
    ("recorder", RECORDED | {"complete": 7}, "'complete' must be true or false, found 7"),
    ("recorder", RECORDED | {"topics": []}, "a parameter is an empty list"),
    ("viewer", {"port": 99999}, "'port' must be from 0 to 65535, found 99999"),
    ("viewer", {"estimates": ["bad topic"]}, "'bad topic'; correct the parameter or the remapping"),
]


@pytest.fixture(scope="module")
def ended(graph):
    """Exit code and text of every node of WRONG. Four run at a time: half of its short life a node waits for others."""

    def run(node, given):
        with graph.start(node, given) as process:
            return process.wait(), process.text()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(run, *zip(*[case[:2] for case in WRONG])))


@pytest.mark.parametrize(
    ("which", "words"), [(k, words) for k, (*_, words) in enumerate(WRONG)], ids=[words for *_, words in WRONG]
)
def test_a_wrong_parameter_ends_the_node_with_one_line(ended, which, words):
    code, text = ended[which]
    assert code == 2, text
    (line,) = text.splitlines()
    assert line.startswith("error: ") and words in line
