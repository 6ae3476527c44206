"""Every shipped YAML is declared and documented: some settings class accepts it, and every key carries a comment."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing
from pathlib import Path

import pytest

from contact_estimation import settings
from contact_estimation.exceptions import ConfigError

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "config").rglob("*.yaml"))


def settings_classes() -> list[type]:
    """Every settings dataclass of the library (its fields are made with ``settings.key``)."""
    found = {}
    for path in sorted((ROOT / "contact_estimation").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.stem.startswith("__") or path.parent.name in ("ros", "nodes"):
            continue
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                fields = dataclasses.fields(value)
                if fields and all("doc" in field.metadata for field in fields):
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    return list(found.values())


CLASSES = settings_classes()


def test_there_is_something_to_check():
    assert FILES and CLASSES


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_key_is_documented(cls):
    for path, field in settings.reference(cls):
        assert field.metadata["doc"].strip(), f"{cls.__name__}.{path} says nothing of itself"
    typing.get_type_hints(cls)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_settings_class_accepts_it(path):
    refusals = []
    for cls in CLASSES:
        try:
            settings.from_yaml(cls, path)
            return
        except ConfigError as error:
            refusals.append(f"{cls.__name__}: {error}")
    pytest.fail("no settings class accepts it:\n" + "\n".join(refusals))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_key_is_commented(path):
    """On its own line, or on the line above; a heading without a value of its own speaks through its keys."""
    above = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"\s*(- )?[A-Za-z_]\w*: *\S", line):
            assert "#" in line or above.lstrip().startswith("#"), (
                f"{path.name}:{number}: no comment says what it does: {line}"
            )
        above = line
