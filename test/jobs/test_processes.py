"""Worker processes: every task has one outcome, whatever happens to the worker that has it."""

import signal

import pytest
from worker_tasks import half, kill, kill_once, started_interruptible

from contact_estimation.exceptions import JobError
from contact_estimation.jobs import gather, open_executor
from contact_estimation.jobs.processes import Processes


def test_an_exception_is_the_outcome_of_its_task_alone():
    outcomes = {outcome.number: outcome for outcome in Processes(2).run(half, range(6))}
    assert sorted(outcomes) == list(range(6))
    assert outcomes[3].error == "ZeroDivisionError: division by zero" and outcomes[3].value is None
    assert [outcomes[k].value for k in (0, 1, 2, 4, 5)] == [0.0, 0.5, 1.0, 2.0, 2.5]


def test_a_killed_worker_loses_nothing(tmp_path):
    marks = ["a", str(tmp_path / "killed.once"), "b", "c"]
    assert gather(Processes(2).run(kill_once, marks)) == ["a", "killed.once", "b", "c"]


def test_a_task_that_kills_every_worker_fails_alone():
    outcomes = {outcome.number: outcome for outcome in Processes(1).run(kill, range(3))}
    assert "SIGKILL" in outcomes[1].error and "2 times" in outcomes[1].error
    assert (outcomes[0].value, outcomes[2].value) == (0, 2)


def test_ctrl_c_is_the_parents_from_the_first_moment_of_a_worker():
    assert gather(Processes(1).run(started_interruptible, [0])) == [False]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])  # this process still hears it


def test_gathering_raises_what_failed_and_counts_what_is_done():
    done = []
    assert gather(open_executor(0).run(half, [1, 2]), done.append) == [0.5, 1.0] and done == [1, 2]
    with pytest.raises(JobError, match="task 0: ZeroDivisionError"):
        gather(open_executor(0).run(half, [3]))


def test_a_negative_number_of_workers_is_refused():
    with pytest.raises(JobError, match="--workers is -1"):
        open_executor(-1)
