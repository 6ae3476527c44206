"""Serves the 3-D page on loopback, and live frames to every open page.

Frames are server-sent events (WHATWG HTML, section 9.2). A producer only stores the newest frame of each observer. Each
open page has a thread of its own, which sends new frames at the page's rate. Nothing is queued for a page that does not
keep up: its thread waits for it, and then sends what is newest. A page that takes nothing at all is disconnected.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from contact_estimation.exceptions import ConfigError

#: Only this address is served; a request that names another host is refused, as a foreign site in the browser may
#: have asked for it.
ADDRESS = "127.0.0.1"
_HOSTS = (ADDRESS, "localhost")
#: [s] A page that hears nothing for this long gets a comment, so that a closed one is noticed.
_HEARTBEAT = 1.0
#: [s] A client that takes nothing for this long is disconnected. The page connects again by itself.
PATIENCE = 10.0
#: [byte] The system keeps about this much for a client that is slow: a second or two of frames, which it gets late.
_BACKLOG = 1 << 16


class Frames:
    """The newest frame of every observer, as JSON.

    A frame is sent with its ``age`` [s]: a page that is opened later can tell what is of now and what is old.

    Args:
        rate: at which pages get frames at most [Hz].

    Attributes:
        period: time between two frames of a page [s].
        watchers: how many pages are open; without one no frame needs to be made.
    """

    def __init__(self, rate: float = 30.0) -> None:
        self.period, self.watchers = 1.0 / rate, 0
        self._newest: dict[str, tuple[int, float, str]] = {}  # number, arrival [s], JSON
        self._news = threading.Condition()
        self._count = 0

    def put(self, observer: str, frame: Mapping[str, Any], arrival: float | None = None) -> None:
        """Store a frame; the one before it is forgotten.

        Args:
            observer: whose it is.
            frame: of :func:`contact_estimation.viz.frames.estimate_frame`, with the names of the ``modes``.
            arrival: when its estimate came, by ``time.monotonic()`` [s]; None: now.
        """
        text = json.dumps({**frame, "observer": observer}, separators=(",", ":"), allow_nan=False)
        with self._news:
            self._count += 1
            self._newest[observer] = self._count, time.monotonic() if arrival is None else arrival, text
            self._news.notify_all()

    def wait(self, seen: int, timeout: float) -> tuple[int, list[str]]:
        """Wait for frames after number ``seen``; returns the last number and the frames, none after ``timeout`` [s]."""
        with self._news:
            self._news.wait_for(lambda: self._count > seen, timeout)
            now, newest = time.monotonic(), self._newest.values()
            fresh = [(max(now - arrival, 0.0), text) for number, arrival, text in newest if number > seen]
            return self._count, [f'{text[:-1]},"age":{age:.3f}}}' for age, text in fresh]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count a page while it is open."""
        with self._news:
            self.watchers += 1
        try:
            yield
        finally:
            with self._news:
                self.watchers -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell a defect; a browser that was killed resets its connections, which is none."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class PageServer:
    """Serves one page, and its frames, until it is closed.

    Args:
        page: text of the HTML file.
        frames: what a live page follows; None for a recording.
        port: 0 takes a free one.
        patience: a client that takes nothing for this long [s] is disconnected.

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(self, page: str, frames: Frames | None = None, port: int = 0, patience: float = PATIENCE) -> None:
        self._ended = threading.Event()
        about = {"page": page.encode(), "frames": frames, "ended": self._ended, "timeout": patience}
        handler = type("Handler", (_Handler,), about)
        try:
            self._server = _Server((ADDRESS, port), handler)
        except OSError as error:
            raise ConfigError(
                f"port {port} of {ADDRESS} cannot be served ({error.strerror}); choose another"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{ADDRESS}:{self._server.server_address[1]}/"

    def close(self) -> None:
        """End, and the streams of the pages that are open."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    page: bytes
    frames: Frames | None
    ended: threading.Event
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer ``/`` with the page and ``/live`` with the stream of frames."""
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host not in _HOSTS:
            self.send_error(HTTPStatus.FORBIDDEN, f"this page is served to {' and '.join(_HOSTS)} only")
        elif self.path == "/":
            self._head("text/html; charset=utf-8", {"Content-Length": str(len(self.page))})
            with contextlib.suppress(OSError):  # the client has gone
                for begin in range(0, len(self.page), _BACKLOG):  # the patience is for each part
                    self.wfile.write(self.page[begin : begin + _BACKLOG])
        elif self.path == "/live" and self.frames is not None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BACKLOG)
            self._head("text/event-stream", {"Cache-Control": "no-store", "Connection": "close"})
            with self.frames.watched(), contextlib.suppress(OSError):  # until the page is closed
                self._stream(self.frames)
            self.close_connection = True
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _head(self, kind: str, more: Mapping[str, str]) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in {"Content-Type": kind, "X-Content-Type-Options": "nosniff", **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, frames: Frames) -> None:
        seen, due = 0, time.monotonic()
        while not self.ended.is_set():
            seen, news = frames.wait(seen, _HEARTBEAT)
            self.wfile.write("".join([f"data: {text}\n\n" for text in news] or [": no news\n\n"]).encode())
            now = time.monotonic()
            due = max(due, now - frames.period) + frames.period  # a late frame does not delay the next one
            time.sleep(max(due - now, 0.0))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
