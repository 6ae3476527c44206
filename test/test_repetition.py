"""No two places of the package share more than ten literal lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "contact_estimation"
#: Lines in a row that two places may share.
MOST = 10


def repeated(files: Mapping[str, str]) -> list[str]:
    """Return pairs of places that share more than :data:`MOST` lines in a row; blank lines and indents do not count."""
    seen: dict[tuple[str, ...], str] = {}
    pairs = []
    for name, text in files.items():
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        for k in range(len(lines) - MOST):
            place = f"{name}:{lines[k][0]}"
            first = seen.setdefault(tuple(line for _, line in lines[k : k + MOST + 1]), place)
            if first != place:
                pairs.append(f"{first} = {place}")
    return pairs


def test_no_two_places_share_more_than_ten_lines():
    files = {str(path.relative_to(PACKAGE)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(files) > 300
    assert not repeated(files)


def test_eleven_shared_lines_are_found():
    lines = [f"x{k} = {k}" for k in range(MOST + 1)]
    indented = "def f():\n    " + "\n\n    ".join(lines)
    assert repeated({"a": "\n".join(lines), "b": indented}) == ["a:1 = b:2"]
    assert not repeated({"a": "\n".join(lines[:-1]), "b": indented})
