"""A headless Chromium driven over the DevTools protocol through pipes (``--remote-debugging-pipe``)."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: Nothing but loopback can be reached; WebGL is drawn by the processor.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


class Chromium:
    """One browser; :meth:`open` gives its pages."""

    def __init__(self, width: int = 1000, height: int = 640) -> None:
        self._folder = tempfile.mkdtemp(prefix="chromium_")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        # Chromium reads from descriptor 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', EXECUTABLE]
        self._process = subprocess.Popen(
            [*shell, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._folder}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._count, self._rest, self.events = 0, b"", []

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **params) -> dict:
        """Call a method and wait for its answer; events that come meanwhile are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._read, 1 << 20)
                assert part, "the browser ended"
                self._rest += part
            line, self._rest = self._rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, address: str) -> "Page":
        """Open a page."""
        return Page(self, address)


class Page:
    """One page of a browser."""

    def __init__(self, browser: Chromium, address: str) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank", newWindow=True)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)

    def call(self, method: str, **params) -> dict:
        """Call a method of the page."""
        return self._browser.call(method, self.session, **params)

    def run(self, script: str):
        """Value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str, timeout: float = 300.0):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + timeout
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return value

    def picture(self, path: Path | str) -> None:
        """Save what the page shows."""
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def events(self, method: str) -> list[dict]:
        """Events of the page so far."""
        self.run("0")
        found = [event for event in self._browser.events if event.get("sessionId") == self.session]
        return [event["params"] for event in found if event.get("method") == method]
