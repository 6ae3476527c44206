"""Saved reports of the benchmarks: Markdown that begins with the command line that makes it, and the machine it ran on.

A neighbour of the scripts, which import it by its name.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def page() -> Path:
    """Return the page beside the script that runs, ``NAME.md``."""
    return Path(sys.argv[0]).with_suffix(".md")


def add_save_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--save``: without a file it means the page beside the script."""
    text = f"also write the report, by default to {page().name} beside this script"
    parser.add_argument("--save", type=Path, nargs="?", const=page(), metavar="FILE.md", help=text)


def check_whole(parser: argparse.ArgumentParser, args: argparse.Namespace, *filters: str) -> None:
    """Refuse to save a part of a table as the table.

    Args:
        parser: of the script.
        args: parsed, with ``save``.
        filters: options that leave out rows or columns.
    """
    given = [f"--{name}" for name in filters if getattr(args, name)]
    if args.save and given:
        parser.error(f"--save writes the whole table; leave out {', '.join(given)}")


def row_name(row: str, *columns: int) -> tuple[str, ...]:
    """Return what stands in some columns of a table's line."""
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    return tuple(cells[column] for column in columns)


def kept_rows(path: Path | None, *columns: int) -> dict[tuple[str, ...], str]:
    """Return the rows of the tables on a page, for a run of a part that replaces its own and keeps the rest.

    Args:
        path: of the page, which need not exist.
        columns: that name a row.

    Returns:
        Lines by name (:func:`row_name`), without the heads of the tables.
    """
    lines = path.read_text().splitlines() if path and path.exists() else []
    rules = {k for k, line in enumerate(lines) if line.startswith("|---")}
    rows = (line for k, line in enumerate(lines) if line.startswith("|") and not rules & {k, k + 1})
    return {row_name(row, *columns): row for row in rows}


def command() -> str:
    """Return the command line of this run; of a file outside the project it keeps the name."""
    script = Path(sys.argv[0]).resolve().relative_to(ROOT)
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return shlex.join(["python", str(script), *words])


def heading(title: str, note: str = "") -> list[str]:
    """Return the first lines of a report; call it before measuring, so that the load is that of others.

    Args:
        title: of the page.
        note: what the figures are, in sentences.
    """
    machine = f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores"
    made = f"`{command()}` on {machine} with a load of {os.getloadavg()[0]:.1f} before it ran."
    return [f"# {title}", "", f"{made} {note}".rstrip(), ""]


def publish(lines: Iterable[str], save: Path | None) -> None:
    """Print a report, and write it where ``--save`` says."""
    text = "\n".join(lines).rstrip() + "\n"
    print(text, end="")
    if save:
        save.write_text(text)
