"""The commands and Python blocks of the pages, collected from Markdown.

A comment before a block marks that it cannot be run here: ``<!-- not run: needs a robot -->``. Its commands are still
parsed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*?) -->\s*\n)?^ *```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```", re.M | re.S
)
_INLINE = re.compile(r"`((?:contact-estimation|python|make) [^`]+)`")
_PROGRAMS = re.compile(
    r"^(contact-estimation|python3?|pip|make|ros2|colcon|rosdep|apt|git|docker|cd|source|export|MUJOCO_GL)\b"
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: Python, or commands."""

    page: Path
    line: int
    python: bool
    text: str
    reason: str

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command; a line that ends in a backslash goes on in the next."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(line.strip().removeprefix("$ "), comments=True) for line in lines if line.strip()]


def blocks(page: Path) -> list[Block]:
    """Blocks of Python and of commands; other ones (YAML, drawings, output) are left out."""
    text, found = page.read_text(), []
    for match in _BLOCK.finditer(text):
        language, body = match["language"], match["text"]
        first = body.strip().removeprefix("$ ")
        shell = language in ("bash", "sh", "console") or (not language and _PROGRAMS.match(first))
        if shell or language == "python":
            line = text[: match.start("text")].count("\n") + 1
            found.append(Block(page, line, language == "python", body, match["reason"] or ""))
    return found


def outputs(page: Path) -> dict[int, list[str]]:
    """Printed lines that a page shows (```` ```text ````), by the line of the block of commands before them."""
    text, found = page.read_text(), {}
    run = [block.line for block in blocks(page) if not (block.python or block.reason)]
    for match in _BLOCK.finditer(text):
        before = [line for line in run if line < text[: match.start("text")].count("\n")]
        if match["language"] == "text" and before:
            found[before[-1]] = [line.rstrip() for line in match["text"].splitlines()]
    return found


def inline_commands(page: Path) -> list[list[str]]:
    """Commands named in running text, without those that are cut short (``...``) or only named (``fit``)."""
    text = _BLOCK.sub("", page.read_text())
    found = [" ".join(words.split()) for words in _INLINE.findall(text)]
    return [shlex.split(words) for words in found if "..." not in words]
