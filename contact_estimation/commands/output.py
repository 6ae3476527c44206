"""Output of the verbs: a text for readers or one JSON object for machines, and progress on stderr."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.exceptions import ConfigError
from contact_estimation.viz.html import cell

if TYPE_CHECKING:
    from contact_estimation.identify.verdict import Verdict  # imports scipy.stats, which takes longer than most verbs


def emit(args: argparse.Namespace, result: dict[str, Any], text: str) -> None:
    """Print ``result`` as one JSON object under ``--json``, else ``text``."""
    print(json.dumps(plain(result)) if args.json else text, flush=True)


def command_line(args: argparse.Namespace) -> str:
    """Return the command as it was typed, for what says how it was made."""
    return shlex.join(["contact-estimation", *args.words])


def warn(args: argparse.Namespace, text: str) -> None:
    """Print a warning of the verb on stderr."""
    print(f"contact-estimation {args.verb}: warning: {text}", file=sys.stderr)


def emit_verdict(args: argparse.Namespace, result: dict[str, Any], verdict: Verdict, text: str) -> int:
    """Print a result with its verdict.

    Args:
        args: parsed arguments.
        result: what was identified; ``interval_total`` is among its keys.
        verdict: its verdict; its keys are added to ``result``.
        text: what to print without ``--json``; the verdict follows it.

    Returns:
        the exit code.
    """
    emit(args, {**result, **verdict.as_json()}, f"{text}\n{verdict.as_text()}")
    return verdict.exit_code


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]], digits: int = 3) -> str:
    """Align a table as text: the first column left, the others right; floats with ``digits`` significant digits."""
    cells = [list(header), *([cell(c, digits) for c in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if k else text.ljust(width) for k, (text, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in cells
    )


def plain(value: Any) -> Any:
    """Turn numpy arrays and numbers into plain Python; NaN and infinities become None (valid JSON)."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def observer_progress(samples: int) -> Callable[[str, int], None]:
    """Make a progress bar for one observer after the other: called with its name and the number of samples done."""
    bar = Progress(samples, "replay")

    def update(name: str, done: int) -> None:
        nonlocal bar
        bar.update(done, name)
        if done == samples:
            bar.close()
            bar = Progress(samples, "replay")

    return update


def prepare_folder(folder: Path) -> None:
    """Make the folder of an output before the work that fills it.

    Raises:
        ConfigError: it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written ({error.strerror}); name another folder") from error


def check_output_file(path: Path | None, recordings: Sequence[Path], option: str = "--out", ending: str = "") -> None:
    """Refuse a file to be written that is a folder, or what the verb reads; call it before the work.

    Args:
        path: the file; None where nothing is written.
        recordings: files and folders that the verb reads.
        option: which names the file, for the error.
        ending: of the only format that is written, with its dot; empty for any.

    Raises:
        ConfigError: it is a folder, one of the recordings, or a file of one, its name promises another format, or it
            cannot be written.
    """
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(f"{option} {path} is a folder; name a file")
    if ending and path.suffix != ending:
        raise ConfigError(f"{option} {path} would be written as {ending}; name it {path.with_suffix(ending)}")
    for recording in filter(Path.exists, recordings if path.exists() else ()):
        if path.samefile(recording) or recording.resolve() in path.resolve().parents:
            raise ConfigError(f"{option} {path} would replace the recording {recording}; name another file")
    check_writable(path, option)


def check_writable(path: Path, option: str) -> None:
    """Refuse a result where nothing can be written before the work is done for it; nothing is made.

    Args:
        path: the file or folder that is to be made.
        option: which names it, for the error.

    Raises:
        ConfigError: the folder that holds it, or the nearest one above it that is there, takes no file.
    """
    if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
        return  # perhaps an open stream or a device
    folder = next(each for each in ([path] if path.is_dir() else path.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written ({error.strerror}); name another {option}, or make room"
        ) from error


def tell_invalid(reasons: Mapping[str, Counter[str]]) -> str:
    """Say how many estimates of whom are invalid and why; empty where all are valid.

    Args:
        reasons: observer -> how often its estimates were invalid for which reason.
    """
    return "; ".join(
        f"{name}: {found.total()} estimates are invalid ("
        + "; ".join(f"{count} x {reason}" for reason, count in found.most_common(3))
        + ")"
        for name, found in reasons.items()
        if found
    )


class Progress:
    """Show a one-line progress bar on stderr: redrawn on a terminal, a line per tenth elsewhere.

    As a context it ends its line, also where an error ends the work.

    Args:
        total: what there is to do.
        label: what is done.
    """

    def __init__(self, total: int, label: str) -> None:
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

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line."""
        if self._live:
            print(file=sys.stderr)
