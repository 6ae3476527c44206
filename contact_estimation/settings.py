"""Settings: dataclasses that are schema, default and documentation at once, read from YAML and validated.

A settings class is a frozen, keyword-only dataclass whose fields are made with :func:`key`. Loading a mapping into it
refuses unknown keys (naming the nearest known one), wrong types, wrong lengths, non-finite numbers and values outside
their range; every error names the file and the full path of the key, e.g. ``contacts[0].stiffness``.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import sys
import types
import typing
from pathlib import Path

import yaml

from contact_estimation.exceptions import ConfigError

_MISSING = dataclasses.MISSING


def key(default=_MISSING, *, doc: str, unit: str = "", check=None, length: int | str | None = None, choices=None):
    """Declare one setting.

    Args:
        default: value used where the file is silent; without it the key is required.
        doc: what the setting does, one sentence.
        unit: SI unit, "" where there is none.
        check: predicate from :func:`positive` and friends, applied to every number of the value.
        length: required length of a list; a string names the count, which the owner checks later (for example
            ``"joints"``).
        choices: allowed words.
    """
    metadata = {"doc": doc, "unit": unit, "check": check, "length": length, "choices": choices}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    if default is _MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def positive(value) -> str | None:
    """Check: strictly greater than zero."""
    return None if value > 0 else "must be greater than 0"


def non_negative(value) -> str | None:
    """Check: zero or greater."""
    return None if value >= 0 else "must not be negative"


def probability(value) -> str | None:
    """Check: between 0 and 1."""
    return None if 0.0 <= value <= 1.0 else "must lie between 0 and 1"


def load_yaml(path: Path | str) -> dict:
    """Read a YAML file whose top level is a mapping.

    Raises:
        ConfigError: the file is absent, is not YAML, or holds something else than a mapping.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"no such configuration file: {path}")
    try:
        data = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values at the top level, found {type(data).__name__}")
    return data


def from_mapping(cls, mapping: dict, source: str):
    """Build the settings dataclass ``cls`` from ``mapping``; ``source`` names its origin in errors.

    Raises:
        ConfigError: unknown key, missing key, wrong type, wrong length, value out of range.
    """
    return _build(cls, mapping, source, "")


def from_yaml(cls, path: Path | str):
    """Build the settings dataclass ``cls`` from the YAML file at ``path``."""
    return from_mapping(cls, load_yaml(path), str(path))


def to_mapping(settings) -> dict:
    """Plain nested mapping of a settings object, ready for ``yaml.safe_dump``."""
    return dataclasses.asdict(settings)


def replace(settings, source: str = "override", **changes):
    """Copy of ``settings`` with some keys changed, validated like a file would be."""
    return from_mapping(type(settings), {**to_mapping(settings), **changes}, source)


def reference(cls, path: str = "") -> list[tuple[str, dataclasses.Field]]:
    """All keys of a settings class with their dotted paths, for documentation and tests."""
    rows = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        name = f"{path}{field.name}"
        rows.append((name, field))
        inner, is_list = _inner_settings(hints[field.name])
        if inner is not None:
            rows += reference(inner, f"{name}[]." if is_list else f"{name}.")
    return rows


def _inner_settings(hint):
    """The settings class inside a type hint (plain, optional or list of), and whether it is a list."""
    for option in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(option):
            return option, typing.get_origin(hint) in (list, tuple)
    return None, False


def _build(cls, mapping, source, path):
    if not isinstance(mapping, dict):
        raise ConfigError(f"{source}: {path.rstrip('.') or 'top level'} must be a mapping, found {mapping!r}")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    for name in mapping:
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, n=1, cutoff=0.0)
            raise ConfigError(f"{source}: unknown key '{path}{name}'; the nearest known key is '{path}{near[0]}'. "
                              f"Known here: {', '.join(sorted(fields))}")
    values = {}
    for name, field in fields.items():
        if name in mapping:
            values[name] = _convert(hints[name], mapping[name], field.metadata, source, path + name)
        elif field.default is _MISSING and field.default_factory is _MISSING:
            raise ConfigError(f"{source}: key '{path}{name}' is missing ({field.metadata.get('doc', 'required')})")
    try:
        return cls(**values)
    except ConfigError as error:  # from a class's own __post_init__, which knows no file name
        raise ConfigError(f"{source}: {path}{error}") from error


def _convert(hint, value, meta, source, path):
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            if type(None) in args:
                return None
            raise ConfigError(f"{source}: '{path}' must not be empty")
        problems = []
        for option in (arg for arg in args if arg is not type(None)):
            try:
                return _convert(option, value, meta, source, path)
            except ConfigError as error:
                problems.append(str(error))
        raise ConfigError(problems[0])
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, source, path + ".")
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{source}: '{path}' must be a list, found {value!r}")
        length = meta.get("length")
        if isinstance(length, int) and len(value) != length:
            raise ConfigError(f"{source}: '{path}' has {len(value)} entries, expected {length}")
        items = [_convert(args[0], item, meta, source, f"{path}[{i}]") for i, item in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin is dict or hint is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{source}: '{path}' must be a mapping, found {value!r}")
        if not args:
            return dict(value)
        return {str(k): _convert(args[1], v, meta, source, f"{path}.{k}") for k, v in value.items()}
    return _scalar(hint, value, meta, source, path)


def _scalar(hint, value, meta, source, path):
    if hint is bool:
        if not isinstance(value, bool):
            raise ConfigError(f"{source}: '{path}' must be true or false, found {value!r}")
        return value
    if hint in (float, int):
        if isinstance(value, str):  # YAML 1.1 reads 1e-3 (no dot) as a string
            try:
                value = float(value)
            except ValueError:
                raise ConfigError(f"{source}: '{path}' must be a number, found {value!r}") from None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{source}: '{path}' must be a number, found {value!r}")
        if not math.isfinite(value):
            raise ConfigError(f"{source}: '{path}' must be finite, found {value!r}")
        if hint is int and value != int(value):
            raise ConfigError(f"{source}: '{path}' must be a whole number, found {value!r}")
        problem = meta["check"](value) if meta.get("check") else None
        if problem:
            unit = f" {meta['unit']}" if meta.get("unit") else ""
            raise ConfigError(f"{source}: '{path}' {problem}, found {value!r}{unit}")
        return hint(value)
    if hint is str:
        if not isinstance(value, str):
            raise ConfigError(f"{source}: '{path}' must be a word, found {value!r}")
        choices = meta.get("choices")
        if choices and value not in choices:
            near = difflib.get_close_matches(value, choices, n=1, cutoff=0.0)
            raise ConfigError(f"{source}: '{path}' is {value!r}; expected one of {', '.join(choices)} "
                              f"(nearest: '{near[0]}')")
        return value
    raise TypeError(f"settings key {path}: type {hint!r} is not supported by the schema")


def share_file(*parts: str) -> Path:
    """Path of a file the package ships (config, urdf, rviz, launch): from the source tree or from an install prefix.

    Raises:
        ConfigError: it is in none of the places; all of them are named.
    """
    places = [Path(__file__).resolve().parent.parent]
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) + [sys.prefix, str(Path.home() / ".local")]
    places += [Path(prefix) / "share" / "contact_estimation" for prefix in prefixes if prefix]
    for place in places:
        if (place / Path(*parts)).exists():
            return place / Path(*parts)
    raise ConfigError(f"the file {Path(*parts)} that this package ships was not found; looked in "
                      f"{', '.join(str(p) for p in places)}. Reinstall the package, or run from its source tree.")


def find_config(kind: str, name: str) -> Path:
    """Path of a configuration given as a file path or as a shipped name of ``config/<kind>/``.

    Raises:
        ConfigError: neither exists; the shipped names are listed, the nearest first.
    """
    if name.endswith((".yaml", ".yml")) or os.sep in name:
        if Path(name).is_file():
            return Path(name)
        raise ConfigError(f"no such configuration file: {name}")
    folder = share_file("config", kind)
    path = folder / f"{name}.yaml"
    if path.is_file():
        return path
    known = sorted(p.stem for p in folder.glob("*.yaml"))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    raise ConfigError(f"there is no {kind[:-1]} '{name}' (nearest: '{near[0] if near else '-'}'). Shipped: "
                      f"{', '.join(known)}; or give the path of a YAML file.")
