"""What verbs print: a text for people or one JSON object for machines, and progress on stderr."""

from __future__ import annotations

import json
import math
import sys
import time

from contact_estimation.viz.html import cell


def add_json_flag(parser) -> None:
    """Add ``--json`` with the meaning every verb gives it."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else")


def emit(args, result: dict, text: str) -> None:
    """Print ``result`` as one JSON object under ``--json``, else ``text``."""
    print(json.dumps(plain(result)) if getattr(args, "json", False) else text)


def text_table(header: list[str], rows: list[list], digits: int = 3) -> str:
    """The table as aligned text: the first column left, the others right; floats with ``digits`` significant digits."""
    cells = [[str(h) for h in header], *([cell(c, digits) for c in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    return "\n".join("  ".join(text.rjust(width) if k else text.ljust(width)
                               for k, (text, width) in enumerate(zip(row, widths))).rstrip() for row in cells)


def plain(value):
    """``value`` with numpy arrays and numbers turned into plain Python; NaN and infinities become None (valid JSON)."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Progress:
    """A one-line progress bar on stderr: redrawn on a terminal, a line per tenth elsewhere."""

    def __init__(self, total: int, label: str):
        self._total, self._label = max(int(total), 1), label
        self._live = sys.stderr.isatty()
        self._tenth, self._start = -1, time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Show that ``done`` of the total is done."""
        share = min(done / self._total, 1.0)
        tenth = int(share * (100 if self._live else 10))
        if tenth == self._tenth and done < self._total:
            return
        self._tenth = tenth
        line = f"{self._label} {100 * share:3.0f} % ({time.monotonic() - self._start:.1f} s) {note}"
        print(f"\r{line}\x1b[K" if self._live else line, end="" if self._live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._live:
            print(file=sys.stderr)
