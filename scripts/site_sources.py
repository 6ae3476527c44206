#!/usr/bin/env python3
"""Gather the pages of the documentation site in build/site: README, docs, benchmark tables, a reference per layer.

python scripts/site_sources.py
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "site"
#: What a reader wants -> pages in docs/, without their ending. A page that is in none of these is an error.
SECTIONS = {
    "Start": ["quickstart", "recordings", "evaluate", "view", "ros", "realtime", "security"],
    "Estimate": [
        "contact_imm",
        "localization",
        "plausibility",
        "tuning",
        "calibration",
        "tools",
        "fitting",
        "observability",
        "baselines",
    ],
    "Control": ["mpc", "drivers", "simulation"],
    "Identify": ["identification", "identify_batch", "identify_probing", "identify_planar"],
    "Extend": ["extending", "architecture"],
    "Reference": ["commands", "configuration", "symbols", "quality", "licences"],
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def pages() -> dict[Path, Path]:
    """Source -> place in the site, of every page that is written by hand or by a benchmark."""
    found = {ROOT / "README.md": Path("index.md")}
    found |= {ROOT / name: Path(name) for name in ("CONTRIBUTING.md", "CHANGELOG.md")}
    found |= {path: path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    found |= {path: path.relative_to(ROOT) for path in sorted((ROOT / "benchmark").glob("*.md"))}
    return found


def turned(text: str, source: Path, places: dict[Path, Path]) -> str:
    """Turn a page's links into the site's; a link to a file that the site does not show becomes its text."""
    here = places[source].parent

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if re.match(r"\w+:|#", target):
            return match[0]
        name, _, anchor = target.partition("#")
        path = (source.parent / name).resolve()
        if path in places:
            place = places[path]
        elif picture and path.is_file():
            place = Path("files") / path.relative_to(ROOT)
            (TARGET / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, TARGET / "pages" / place)
        else:
            return words
        relative = Path(os.path.relpath(place, here)).as_posix()
        return f"{picture}[{words}]({relative}{'#' + anchor if anchor else ''})"

    return _LINK.sub(link, text)


def reference() -> dict[str, str]:
    """Place -> text of the reference: the public names, then a page per layer with every module of it."""
    package = ROOT / "contact_estimation"
    source = (package / "__init__.py").read_text()
    modules = ast.literal_eval(re.search(r"^_MODULES = (\{.*?^\})", source, re.M | re.S)[1])
    names = [f"{module}.{name}" for module, names in modules.items() for name in names]
    text = ["# Public names\n\nImport these from `contact_estimation`.\n"]
    text += [f"## {name.rpartition('.')[2]}\n\n::: {name}\n" for name in names]
    found = {"reference/index.md": "\n".join(text)}
    layers = {path.parent for path in package.glob("*/__init__.py")}
    for layer in sorted(layers):
        text = [f"# {layer.name}\n"]
        for module in sorted(layer.rglob("*.py")):
            parts = module.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text.append(f"## {name.removeprefix('contact_estimation.')}\n\n::: {name}\n")
        found[f"reference/{layer.name}.md"] = "\n".join(text)
    return found


def navigation(places: dict[Path, Path], api: dict[str, str]) -> str:
    """Table of contents as mkdocs reads it."""
    known = {path.as_posix() for path in places.values()}
    listed = {f"{name}.md" for names in SECTIONS.values() for name in names}
    unknown = {path.name for path in (ROOT / "docs").glob("*.md")} - listed
    if unknown:
        raise SystemExit(f"site_sources: put {', '.join(sorted(unknown))} into a section of SECTIONS")
    lines = ["nav:", "  - index.md"]
    for section, names in SECTIONS.items():
        lines.append(f"  - {section}:")
        lines += [f"      - {name}.md" for name in names if f"{name}.md" in known]
        if section == "Extend":
            lines.append("      - CONTRIBUTING.md")
    lines += ["      - CHANGELOG.md", "  - Python:", *(f"      - {place}" for place in api)]
    lines += ["  - Measured:", *(f"      - {place}" for place in sorted(known) if place.startswith("benchmark/"))]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the pages and the configuration that lists them."""
    shutil.rmtree(TARGET, ignore_errors=True)
    places, api = pages(), reference()
    for source, place in places.items():
        path = TARGET / "pages" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(turned(source.read_text(), source, places))
    for place, text in api.items():
        path = TARGET / "pages" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (TARGET / "mkdocs.yml").write_text(
        f"INHERIT: ../../mkdocs.yml\ndocs_dir: pages\nsite_dir: ../../out/site\n{navigation(places, api)}"
    )


if __name__ == "__main__":
    main()
