#!/usr/bin/env python3
"""Write docs/configuration.md from the settings classes: every key with unit, default and effect.

python scripts/configuration_reference.py
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "configuration.md"
HEAD = """# Configuration

This page lists every key of every YAML file. `python scripts/configuration_reference.py` makes it from the settings
classes.

A file is a mapping of these keys. The reader refuses an unknown key and names the nearest known one. It also refuses a
wrong type, a wrong length and a value out of range. A key whose default is *required* must be in the file.

Shipped files are in `config/` (`robots`, `sensors`, `observers`, ...) and are chosen by name, your own files by path.
The command line has `--robot`, `--sensors`, `--observer` and `--config`. The nodes have parameters of the same names
([ROS](ros.md)).
"""


def settings_classes() -> dict[str, type]:
    """Every settings class of the library by qualified name, in the order of the rooms."""
    found = {}
    for path in sorted((ROOT / "contact_estimation").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        # what needs ROS documents itself in ros.md
        if path.stem.startswith("__") or parts[1] in ("ros", "nodes", "commands"):
            continue
        if "key(" not in path.read_text():
            continue
        module = importlib.import_module(".".join(parts))
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value):
                fields = dataclasses.fields(value)
                if fields and all("doc" in field.metadata for field in fields):
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def page() -> str:
    """Make the whole page."""
    parts = [HEAD]
    for name, cls in settings_classes().items():
        parts.append(
            f"## {cls.__name__}\n\n`{name}`: {first_sentence(cls)}\n\n| key | unit | default | effect "
            f"|\n|---|---|---|---|"
        )
        rows = [
            f"| `{field.name}` | {field.metadata['unit'] or '-'} | {default_of(field)} | "
            f"{effect_of(field, hints[field.name])} |"
            for hints in (typing.get_type_hints(cls),)
            for field in dataclasses.fields(cls)
        ]
        parts[-1] += "\n" + "\n".join(rows) + "\n"
    return "\n".join(parts)


def first_sentence(cls) -> str:
    """Say what the class is, in one line."""
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")


def default_of(field) -> str:
    """Print the default as YAML would have it."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "*required*"
    if dataclasses.is_dataclass(value):
        return f"see {type(value).__name__}"
    words = {None: "none", True: "true", False: "false"}
    return f"`{words[value] if value is None or isinstance(value, bool) else value}`"


def effect_of(field, hint) -> str:
    """Meaning, allowed words, length, and the section of the keys below it."""
    text = field.metadata["doc"].replace("|", "\\|")
    for option in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(option):
            listed = ", a list of them" if typing.get_origin(hint) in (list, tuple) else ""
            text += f" (keys: {option.__name__}{listed})"
    if field.metadata["choices"]:
        text += f" (one of: {', '.join(field.metadata['choices'])})"
    length = field.metadata["length"]
    if length is not None:
        text += f" (one entry per {length.rstrip('s')})" if isinstance(length, str) else f" ({length} numbers)"
    return text


def main() -> int:
    """Write the page."""
    TARGET.write_text(page())
    print(f"written: {TARGET.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
