"""Dask: the same outcomes as here, from real workers of a real scheduler; clear errors where there is none."""

import math
import socket
import subprocess
import sys

import pytest
from rtde_controller import HOST

from contact_estimation.exceptions import JobError
from contact_estimation.jobs import gather, open_executor


def test_without_dask_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(JobError, match="pip install dask distributed"):
        open_executor(cluster="tcp://127.0.0.1:8786")


def free_port():
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return sock.getsockname()[1]


@pytest.fixture
def scheduler():
    pytest.importorskip("distributed", reason="Dask is not installed")
    address = f"tcp://{HOST}:{free_port()}"
    dask = [sys.executable, "-m", "dask"]
    port = address.rpartition(":")[2]
    options = ["--host", HOST, "--port", port, "--no-dashboard"]
    processes = [subprocess.Popen([*dask, "scheduler", *options], stderr=subprocess.DEVNULL)]
    worker = ["worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    processes.append(subprocess.Popen([*dask, *worker], stderr=subprocess.DEVNULL))
    yield address
    for process in reversed(processes):
        process.kill()
    for process in reversed(processes):
        process.wait()


def test_tasks_on_a_worker_give_what_they_give_here(scheduler):
    cluster = None
    for _ in range(60):
        try:
            cluster = open_executor(cluster=scheduler)
            break
        except JobError as error:
            assert "has no worker" in str(error) or "no Dask scheduler" in str(error)
    assert gather(cluster.run(math.sqrt, [1.0, 4.0, 9.0])) == [1.0, 2.0, 3.0]
    assert [outcome.error for outcome in cluster.run(math.sqrt, [-1.0])] == ["ValueError: math domain error"]
