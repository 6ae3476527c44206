#!/usr/bin/env python3
"""Write docs/commands.md from the parsers: every verb of the command line with its arguments.

python scripts/command_reference.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "commands.md"
HEAD = """# Command line

This page lists every verb of `contact-estimation` with its arguments. `python scripts/command_reference.py` makes it
from the parsers.

Every verb has `--help` and `--json`. With `--json` it prints one JSON object on stdout and nothing else. Exit code 0
means done, 1 that something is missing (`doctor`), 2 an error that the user can mend, 3 a result that failed its own
tests, 130 Ctrl-C.
"""
#: Arguments of every verb, which the head of the page explains.
COMMON = {"help", "json"}


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield words of each verb with its parser, in the order of ``--help``."""
    from contact_estimation.cli import IDENTIFY, VERBS, build_parser

    for words in [*((verb,) for verb in VERBS), *(("identify", system) for system in IDENTIFY)]:
        parser = build_parser(*words)
        for word in words:
            (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
            parser = verbs.choices[word]
        yield " ".join(words), parser


def page() -> str:
    """Make the whole page."""
    return "\n".join([HEAD, *(section(words, parser) for words, parser in parsers())])


def section(words: str, parser: argparse.ArgumentParser) -> str:
    """Write one verb: what it does, then a row per argument."""
    does = parser.description or ""
    rows = [row(parser, action) for action in parser._actions if action.dest not in COMMON]
    return "\n".join(
        [f"## {words}", "", f"{does[0].upper()}{does[1:]}.", "", "| argument | effect |", "|---|---|", *rows, ""]
    )


def row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Write one argument: its names with the word for its value, and its effect; the help names the default."""
    value = parser._get_formatter()._format_args(action, action.metavar or action.dest.upper())
    names = " ".join(filter(None, [", ".join(action.option_strings), value]))
    text = " ".join((action.help or "").split()) % {**vars(action), "prog": parser.prog}
    required = " (required)" if action.option_strings and action.required else ""
    return "| {} | {} |".format(*(part.replace("|", "\\|") for part in (f"`{names}`", text + required)))


def main() -> int:
    """Write the page."""
    TARGET.write_text(page())
    print(f"written: {TARGET.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
