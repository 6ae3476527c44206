"""The picture of the 3-D page: a simulated press, in a headless Chromium.

python scripts/view_picture.py docs/pictures/view.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROBOT, SCENARIO, SECONDS = "ur16e", "linear_contact", 8
OBSERVERS = ("contact_imm", "momentum")
PICTURED = 7.2  # [s], when the picture is taken
SIZE = "1280,680"  # of the window [px]
#: WebGL is drawn by the processor; nothing but the file is read.
FLAGS = ("--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Simulate, make the page, take the picture."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures/view.png").resolve()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is here; install one (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        bag, page = Path(folder) / "press_bag", Path(folder) / "page.html"
        run("simulate", SCENARIO, "--robot", ROBOT, "--seconds", str(SECONDS), "--out", str(bag))
        observers = [word for name in OBSERVERS for word in ("--observer", name)]
        run("view", str(bag), "--robot", ROBOT, *observers, "--out", str(page))
        address = f"{page.as_uri()}#t={PICTURED}"
        words = [f"--user-data-dir={folder}/browser", f"--window-size={SIZE}", f"--screenshot={path}"]
        # Ten seconds of the page's own clock: long enough to draw, however slow the machine.
        command = [browser, *FLAGS, *words, "--virtual-time-budget=10000", address]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(path)


def run(*words: str) -> None:
    """Run a verb of the command line."""
    subprocess.run([sys.executable, "-m", "contact_estimation", *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
