#!/usr/bin/env python3
"""Write docs/configuration.md from the settings classes: every key with unit, default and effect.

python scripts/configuration_reference.py
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "configuration.md"
HEAD = """# Configuration

This page lists every key of every YAML file and every parameter of the nodes. `python
scripts/configuration_reference.py` makes it from the settings classes.

A file is a mapping of these keys. The reader refuses an unknown key and names the nearest known one. It also refuses a
wrong type, a wrong length and a value out of range. A key whose default is *required* must be in the file.

Shipped files are in `config/` (`robots`, `sensors`, `observers`, ...) and are chosen by name, your own files by path.
The command line has `--robot`, `--sensors`, `--observer` and `--config`. The nodes have parameters of the same names
([ROS](ros.md)).
"""
NODES = """## Parameters of the nodes

Set them with `-p name:=value` behind `--ros-args`, or in the `params_file` of a launch. An unknown name, a wrong type
and a value out of range end the node before the first sample ([ROS](ros.md#nodes)).
"""
#: Numbers of which every check refuses at least one, and then says its range.
OUTSIDE = (-1.0, 0.0, 2.0, 1e9)


def settings_classes() -> dict[str, type]:
    """Every settings class of the library by qualified name, in the order of the modules."""
    found = {}
    for path in sorted((ROOT / "contact_estimation").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if path.stem.startswith("__") or parts[1] in ("ros", "nodes", "commands"):
            continue  # what needs ROS; the nodes' parameters are in node_settings, without it
        if "key(" not in path.read_text():
            continue
        module = importlib.import_module(".".join(parts))
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value):
                fields = dataclasses.fields(value)
                if fields and all("doc" in field.metadata for field in fields):
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def node_parameters() -> dict[str, type]:
    """Classes of the nodes' parameters by qualified name."""
    module = importlib.import_module("contact_estimation.ros.node_settings")
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {f"{module.__name__}.{name}": cls for name, cls in own.items() if dataclasses.is_dataclass(cls)}


def page() -> str:
    """Make the whole page."""
    nodes = [f"#{section(name, cls, inherited=False)}" for name, cls in node_parameters().items()]
    return "\n".join([HEAD, *(section(name, cls) for name, cls in settings_classes().items()), NODES, *nodes])


@functools.lru_cache
def repeated() -> frozenset[str]:
    """Names that several settings classes have."""
    names = [cls.__name__ for cls in settings_classes().values()]
    return frozenset(name for name in names if names.count(name) > 1)


def title(cls: type) -> str:
    """Name of a class, with its package where another class has the same name."""
    return f"{cls.__name__} ({cls.__module__.split('.')[1]})" if cls.__name__ in repeated() else cls.__name__


def section(name: str, cls: type, inherited: bool = True) -> str:
    """Write a class: what it is and its keys, those it inherits with them or as a link to where they are."""
    hints = typing.get_type_hints(cls)
    fields = [field for field in dataclasses.fields(cls) if inherited or field.name in vars(cls)["__annotations__"]]
    bases = (
        []
        if inherited
        else [f"[`{base.__name__}`](#{base.__name__.lower()})" for base in cls.__bases__ if base is not object]
    )
    says = f"`{name}`: {first_sentence(cls)}" + (f" With those of {' and '.join(bases)}." if bases else "")
    rows = [
        f"| `{field.name}` | {field.metadata['unit'] or '-'} | {default_of(field)} | "
        f"{effect_of(field, hints[field.name])} |"
        for field in fields
    ]
    head = ["| key | unit | default | effect |", "|---|---|---|---|"]
    return "\n".join([f"## {title(cls)}", "", says, "", *head, *rows, ""])


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
        return f"see {title(type(value))}"
    if value == "":
        return "-"
    words = {None: "none", True: "true", False: "false"}
    return f"`{words[value] if value is None or isinstance(value, bool) else value}`"


def effect_of(field, hint) -> str:
    """Meaning, allowed words, length, and the section of the keys below it."""
    text = field.metadata["doc"].replace("|", "\\|")
    for option in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(option):
            listed = ", a list of them" if typing.get_origin(hint) in (list, tuple) else ""
            text += f" (keys: {title(option)}{listed})"
    if field.metadata["choices"]:
        text += f" (one of: {', '.join(filter(None, field.metadata['choices']))})"
    if check := field.metadata["check"]:
        text += f" ({next(filter(None, map(check, OUTSIDE)))})"
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
