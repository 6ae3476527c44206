"""The server of the page: loopback only, and no client that does not read costs the others or the producer anything."""

import json
import socket
import struct
import time
import tracemalloc
import urllib.error
import urllib.request

import pytest

from contact_estimation.viz.server import Frames, PageServer

#: A frame of 20 kB: more than any real one.
FRAME = {"t": 0.0, "shapes": [["x" * 19_900]]}


def test_only_loopback_is_served():
    server = PageServer("page", Frames())
    try:
        assert urllib.request.urlopen(server.address, timeout=60).read() == b"page"
        request = urllib.request.Request(server.address, headers={"Host": "attacker.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, timeout=60)
        assert server.address.startswith("http://127.0.0.1:")
    finally:
        server.close()


def test_a_browser_that_is_killed_leaves_no_traceback(capfd):
    """It resets its connections; the terminal of the viewer showed a traceback for each."""
    server = PageServer("page", Frames())
    try:
        for _ in range(5):
            client = socket.create_connection(("127.0.0.1", int(server.address.rstrip("/").rsplit(":", 1)[1])))
            time.sleep(0.05)  # until a thread reads from it
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        time.sleep(0.2)
        assert urllib.request.urlopen(server.address, timeout=60).read() == b"page"
    finally:
        server.close()
    assert capfd.readouterr().err == ""


def open_stream(server: PageServer) -> socket.socket:
    """Ask for the stream of frames as a client with a small buffer that does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(("127.0.0.1", int(server.address.rstrip("/").rsplit(":", 1)[1])))
    client.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return client


def wait_for(true, seconds: float) -> None:
    """Return when ``true()`` is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "never true"
        time.sleep(0.01)


def test_a_client_that_never_reads_costs_nothing_and_is_disconnected():
    frames = Frames(rate=200.0)
    server = PageServer("page", frames, patience=3.0)
    try:
        stuck = open_stream(server)
        reader = urllib.request.urlopen(f"{server.address}live", timeout=60)
        wait_for(lambda: frames.watchers == 2, 60.0)
        tracemalloc.start()
        worst, before = 0.0, 0
        for k in range(300):  # 6 MB
            start = time.perf_counter()
            frames.put("estimator", {**FRAME, "t": k})
            worst = max(worst, time.perf_counter() - start)
            while not (line := reader.readline()).startswith(b"data:"):
                pass
            assert json.loads(line[5:])["t"] == k  # the other one gets every frame at once
            if k == 50:
                before = tracemalloc.get_traced_memory()[0]
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 10 * 20_000, f"memory grew by {grown} bytes"
        assert worst < 1.0, f"a frame took {worst:.3f} s"
        wait_for(lambda: frames.watchers == 1, 60.0)  # nobody decodes estimates for the stuck one any more
        stuck.settimeout(60.0)
        got = 0
        while part := stuck.recv(1 << 20):
            got += len(part)
        assert got < 600_000, f"{got} bytes of old frames were kept for it"
    finally:
        server.close()


def test_a_slow_client_gets_what_is_newest_next():
    frames = Frames(rate=1000.0)
    server = PageServer("page", frames)
    try:
        slow = open_stream(server)
        wait_for(lambda: frames.watchers == 1, 60.0)
        for k in range(500):  # 10 MB, while it reads nothing
            frames.put("estimator", {**FRAME, "t": k})
            time.sleep(0.002)
        slow.settimeout(60.0)
        with slow.makefile("rb") as lines:
            times = []
            for line in lines:
                if line.startswith(b"data:"):
                    times.append(json.loads(line[5:])["t"])
                    if times[-1] == 499:
                        break
        assert len(times) < 60, f"{len(times)} frames were kept for it"  # the others were left out
    finally:
        server.close()


def test_a_frame_tells_its_age():
    frames = Frames()
    frames.put("estimator", FRAME, arrival=time.monotonic() - 5.0)
    _, [text] = frames.wait(0, 1.0)
    assert json.loads(text)["age"] == pytest.approx(5.0, abs=0.5) and json.loads(text)["observer"] == "estimator"
