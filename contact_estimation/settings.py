"""Settings: dataclasses that are schema, default and documentation at once, read from YAML and validated.

A settings class is a frozen, keyword-only dataclass whose fields are made with :func:`key`. Loading a mapping into it
refuses unknown keys (naming the nearest known one), wrong types, wrong lengths, non-finite numbers and values outside
their range; every error names the file and the full path of the key, e.g. ``contacts[0].stiffness``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import os
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from contact_estimation.exceptions import ConfigError

_MISSING = dataclasses.MISSING
#: No quantity in SI units is beyond this, and its square is still a number.
_LARGEST = 1e100

T = TypeVar("T")
#: Says what is wrong with a number, None where nothing is.
Check = Callable[[float], "str | None"]


def key(
    default: Any = _MISSING,
    *,
    doc: str,
    unit: str = "",
    check: Check | None = None,
    length: int | str | None = None,
    choices: Sequence[str] | None = None,
    was: str = "",
) -> Any:
    """Declare one setting.

    Args:
        default: value used where the file is silent; without it the key is required.
        doc: what the setting does, one sentence.
        unit: SI unit, "" where there is none.
        check: predicate from :func:`positive` and friends, applied to every number of the value.
        length: required length of a list; a string names the count, which the owner checks later (for example
            ``"joints"``).
        choices: allowed words.
        was: an earlier name of the key; a file that still has it is refused with an error that names the new one.

    Returns:
        The dataclass field.
    """
    metadata = {"doc": doc, "unit": unit, "check": check, "length": length, "choices": choices, "was": was}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    if default is _MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def positive(value: float) -> str | None:
    """Check: strictly greater than zero."""
    return None if value > 0 else "must be greater than 0"


def non_negative(value: float) -> str | None:
    """Check: zero or greater."""
    return None if value >= 0 else "must not be negative"


def probability(value: float) -> str | None:
    """Check: between 0 and 1."""
    return None if 0.0 <= value <= 1.0 else "must lie between 0 and 1"


def fraction(value: float) -> str | None:
    """Check: above 0, at most 1."""
    return None if 0 < value <= 1 else "must be above 0 and at most 1"


def load_yaml(path: Path | str) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping.

    Args:
        path: of the file.

    Raises:
        ConfigError: the file is absent, is not YAML, or holds something else than a mapping.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"no such configuration file: {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as text in UTF-8 ({error}); save it as UTF-8") from error
    data = parse_yaml(text, str(path))
    if not isinstance(data, dict):
        found = "nothing" if data is None else type(data).__name__
        raise ConfigError(f"{path}: expected a mapping of keys to values at the top level, found {found}")
    return data


def parse_yaml(text: str, source: str) -> Any:
    """Parse a YAML document in which no key stands twice.

    Args:
        text: the document.
        source: where it comes from, for errors.

    Raises:
        ConfigError: it is not YAML, a key stands twice in one mapping, a tag does not fit its value, or it is nested
            too deeply.
    """
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {_place(error)}") from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:  # a tag's own conversion raises the others
        raise ConfigError(f"{source} is not valid YAML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{source} is not valid YAML: it is nested too deeply") from error


def _place(error: yaml.MarkedYAMLError) -> str:
    """Say line, column and what is wrong there."""
    mark = error.problem_mark or error.context_mark
    words = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {words}" if mark else words


try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML was built without libyaml

    class CParser(Reader, Scanner, Parser):  # type: ignore[misc,no-redef]
        """The same in Python."""

        def __init__(self, text: str) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)


class _Loader(Composer, CParser, SafeConstructor, Resolver):  # type: ignore[misc]  # PyYAML has no types
    """YAML's safe loader on libyaml's parser, four times as fast; a key that stands twice is an error.

    The nodes are composed in Python: libyaml's own composer ends the process where a document is nested too deeply.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[Any, yaml.Mark] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge" or not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"the key '{key_node.value}' stands twice, before in line {seen[key_node.value].line + 1}",
                    key_node.start_mark,
                )
            seen[key_node.value] = key_node.start_mark
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def from_mapping(cls: type[T], mapping: Mapping[str, Any], source: str) -> T:
    """Build the settings dataclass ``cls`` from ``mapping``; ``source`` names its origin in errors.

    Raises:
        ConfigError: unknown key, missing key, wrong type, wrong length, value out of range.
    """
    return _build(cls, mapping, source, "")


def from_yaml(cls: type[T], path: Path | str) -> T:
    """Build the settings dataclass ``cls`` from the YAML file at ``path``."""
    return from_mapping(cls, load_yaml(path), str(path))


def to_mapping(settings: Any) -> dict[str, Any]:
    """Plain nested mapping of a settings object, ready for ``yaml.safe_dump``."""
    return dataclasses.asdict(settings)


def replace(settings: T, source: str = "override", **changes: Any) -> T:
    """Return a copy of settings with some keys changed, validated as a file would be.

    Args:
        settings: an instance of a settings class.
        source: what changes them, for the error.
        changes: key -> new value.

    Raises:
        ConfigError: an unknown key, or a value that is not allowed.
    """
    return from_mapping(type(settings), {**to_mapping(settings), **changes}, source)


def reference(cls: Any, path: str = "") -> list[tuple[str, dataclasses.Field[Any]]]:
    """Return all keys of a settings class with their dotted paths, for documentation and tests.

    Args:
        cls: the settings class.
        path: put in front of every key.
    """
    rows = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        name = f"{path}{field.name}"
        rows.append((name, field))
        inner, is_list = _inner_settings(hints[field.name])
        if inner is not None:
            rows += reference(inner, f"{name}[]." if is_list else f"{name}.")
    return rows


def show(value: Any) -> str:
    """Return a value as text for an error, cut short."""
    return reprlib.repr(value)


def _inner_settings(hint: Any) -> tuple[Any, bool]:
    """Find the settings class inside a type hint (plain, optional or list of), and whether it is a list."""
    for option in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(option):
            return option, typing.get_origin(hint) in (list, tuple)
    return None, False


def _build(cls: type[T], mapping: Any, source: str, path: str) -> T:
    if not isinstance(mapping, dict):
        raise ConfigError(f"{source}: {path.rstrip('.') or 'top level'} must be a mapping, found {show(mapping)}")
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, cls))}
    hints = typing.get_type_hints(cls)
    renamed = {field.metadata["was"]: name for name, field in fields.items() if field.metadata.get("was")}
    for name in mapping:
        if name in renamed:
            raise ConfigError(f"{source}: the key '{path}{name}' is now called '{path}{renamed[name]}'; rename it")
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, n=1, cutoff=0.0)
            raise ConfigError(
                f"{source}: unknown key '{path}{name}'; the nearest known key is '{path}{near[0]}'. "
                f"Known here: {', '.join(sorted(fields))}"
            )
    values = {}
    for name, field in fields.items():
        if name in mapping:
            values[name] = _convert(hints[name], mapping[name], field.metadata, source, path + name)
        elif field.default is _MISSING and field.default_factory is _MISSING:
            raise ConfigError(f"{source}: key '{path}{name}' is missing ({field.metadata.get('doc', 'required')})")
    try:
        return cls(**values)
    except ConfigError as error:  # from a class's own __post_init__, which knows no file name
        where = path if str(error).startswith("'") or not path else f"{path.rstrip('.')}: "
        raise ConfigError(f"{source}: {where}{error}") from error


def _convert(hint: Any, value: Any, meta: Mapping[str, Any], source: str, path: str) -> Any:
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
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _build(hint, value, source, path + ".")
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{source}: '{path}' must be a list, found {show(value)}")
        length = meta.get("length")
        if isinstance(length, int) and len(value) != length:
            raise ConfigError(f"{source}: '{path}' has {len(value)} entries, expected {length}")
        items = [_convert(args[0], item, meta, source, f"{path}[{i}]") for i, item in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin is dict or hint is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{source}: '{path}' must be a mapping, found {show(value)}")
        if not args:
            return dict(value)
        return {str(k): _convert(args[1], v, meta, source, f"{path}.{k}") for k, v in value.items()}
    return _scalar(hint, value, meta, source, path)


def _scalar(hint: Any, value: Any, meta: Mapping[str, Any], source: str, path: str) -> Any:
    if hint is bool:
        if not isinstance(value, bool):
            raise ConfigError(f"{source}: '{path}' must be true or false, found {show(value)}")
        return value
    if hint in (float, int):
        if isinstance(value, str):  # YAML 1.1 reads 1e-3 (no dot) as a string
            try:
                value = float(value)
            except ValueError:
                raise ConfigError(f"{source}: '{path}' must be a number, found {show(value)}") from None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{source}: '{path}' must be a number, found {show(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{source}: '{path}' must be finite, found {value!r}")
        if value and not 1 / _LARGEST <= abs(value) <= _LARGEST:
            raise ConfigError(
                f"{source}: '{path}' must be 0 or of a size between {1 / _LARGEST:g} and {_LARGEST:g}, "
                f"found {show(value)}"
            )
        if hint is int and value != int(value):
            raise ConfigError(f"{source}: '{path}' must be a whole number, found {show(value)}")
        problem = meta["check"](value) if meta.get("check") else None
        if problem:
            unit = f" {meta['unit']}" if meta.get("unit") else ""
            raise ConfigError(f"{source}: '{path}' {problem}, found {show(value)}{unit}")
        return hint(value)
    if hint is str:
        if not isinstance(value, str):
            raise ConfigError(f"{source}: '{path}' must be a word, found {show(value)}")
        choices = meta.get("choices")
        if choices and value not in choices:
            near = difflib.get_close_matches(value, choices, n=1, cutoff=0.0)
            words = ", ".join(choice or "''" for choice in choices)
            raise ConfigError(f"{source}: '{path}' is {show(value)}; expected one of {words} (nearest: '{near[0]}')")
        return value
    raise TypeError(f"settings key {path}: type {hint!r} is not supported by the schema")


def share_file(*parts: str) -> Path:
    """Path of a file the package ships (config, urdf, rviz, launch): from the source tree or from an install prefix.

    Raises:
        ConfigError: it is in none of the places; all of them are named.
    """
    places = [Path(__file__).resolve().parent.parent]
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix, str(Path.home() / ".local")]
    places += [Path(prefix) / "share" / "contact_estimation" for prefix in prefixes if prefix]
    for place in places:
        if (place / Path(*parts)).exists():
            return place / Path(*parts)
    raise ConfigError(
        f"the file {Path(*parts)} that this package ships was not found; looked in "
        f"{', '.join(str(p) for p in places)}. Reinstall the package, or run from its source tree."
    )


def find_urdf(name: str, folder: Path | str) -> Path | None:
    """Find a URDF by its path from a profile's ``folder`` on, or by the name of a shipped robot's; else None."""
    own = [Path(folder, name)] if folder or Path(name).is_absolute() else []
    places = [*own, *share_file("config", "robots").glob(f"*/{name}")]
    return next((place for place in places if place.is_file()), None)


def config_files(kind: str, folder: Path | str | None = None) -> dict[str, Path]:
    """Find every configuration of a kind that can be named.

    Args:
        kind: ``robots``, ``sensors``, ``observers``, ``tasks``, ``actuators``, ``simulation``, ...
        folder: a robot's profile folder; what it has goes before what is shared.

    Returns:
        Name to path: shared ones of ``config/<kind>``, and those of the robots: ``config/robots/<robot>/<kind>/`` by
        their own name, ``config/robots/<robot>/<kind>.yaml`` by the robot's.
    """
    config = share_file("config")
    found = {path.parent.name: path for path in config.glob(f"robots/*/{_part(kind)}")}
    for paths in (
        config.glob(f"robots/*/{kind}/*.yaml"),
        config.glob(f"{kind}/*.yaml"),
        Path(folder).glob(f"{kind}/*.yaml") if folder else (),
    ):  # the later ones go before
        found |= {path.stem: path for path in paths}
    return dict(sorted(found.items()))


def find_config(
    kind: str, name: str, folder: Path | str | None = None, takes: Callable[[Path], bool] = lambda path: True
) -> Path:
    """Return the path of a configuration given by its name, as a file, or as a profile folder that has it.

    Args:
        kind: folder of ``config``, such as ``observers``.
        name: shipped name, YAML file, or folder.
        folder: profile of a robot; its files come first.
        takes: whether the caller takes a file, for the names that an error lists.

    Raises:
        ConfigError: there is none; the known names are listed, the nearest first.
    """
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name)
    known = {} if os.sep in name else config_files(kind, folder)
    if name in known:
        return known[name]
    if name and (Path(name) / _part(kind)).is_file():
        return Path(name) / _part(kind)
    if name and Path(name).is_dir():
        raise ConfigError(f"the folder {name} has no {_part(kind)}; docs/extending.md says what a robot's folder holds")
    if name.endswith((".yaml", ".yml")) or os.sep in name:
        raise ConfigError(f"no such configuration file: {name}")
    known = {name: path for name, path in known.items() if takes(path)}
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    raise ConfigError(
        f"there is no {_NOUNS.get(kind, kind.removesuffix('s'))} '{name}' (nearest: '{near[0] if near else '-'}'). "
        f"Shipped: {', '.join(known)}; or give the path of a YAML file{' or folder' if kind == 'robots' else ''}."
    )


#: Kind of a task -> the keys that only its files have, and what takes it.
_TASKS = {
    "scenario": (("surfaces", "motion"), "simulate SCENARIO"),
    "mpc": (("horizon", "weights"), "the node mpc (parameter task)"),
    "sequence": (("task", "steps"), "mpc sequence --steps"),
    "loop": (("mpc", "observer"), "mpc TASK"),
    "probe": (("mpc", "sensing"), "mpc probe"),
}


def task_names(kind: str) -> list[str]:
    """Names of the shipped tasks of a kind, such as scenario; all tasks share one folder."""
    return [name for name, path in config_files("tasks").items() if _is_task(kind, path)]


def _is_task(kind: str, path: Path) -> bool:
    return load_yaml(path).keys() >= set(_TASKS[kind][0])


def load_task(cls: type[T], kind: str, name: str, folder: Path | str | None = None) -> T:
    """Load a task, by name or from a file.

    Args:
        cls: its settings class.
        kind: scenario, mpc or sequence.
        name: shipped name or YAML file.
        folder: profile of a robot; its tasks come first.

    Raises:
        ConfigError: there is none, it is a task of another kind, or an error in the file.
    """
    own, taker = _TASKS[kind]
    path = find_config("tasks", name, folder, functools.partial(_is_task, kind))
    given = load_yaml(path)
    for keys, other in _TASKS.values():
        if given.keys() >= set(keys) and not given.keys() >= set(own):
            raise ConfigError(
                f"{path} has the keys {' and '.join(keys)}, as a task of {other}; {taker} takes one with "
                f"{' and '.join(own)}"
            )
    return from_mapping(cls, given, str(path))


def config_for_robot(kind: str, task: str, robot: str) -> Path:
    """Path of the configuration of a task that is written for each robot, ``TASK_ROBOT``.

    Raises:
        ConfigError: there is none; the robots that have one are listed, or the known tasks.
    """
    prefix = f"{task}_"
    robots = [name.removeprefix(prefix) for name in config_files(kind) if name.startswith(prefix)]
    if robots and robot not in robots:
        raise ConfigError(
            f"{task} is set up for robot {', '.join(robots)}, not for '{robot}': name one of these with --robot, or "
            "none for the default"
        )
    return find_config(kind, prefix + robot)


#: What errors call an entry of a folder of ``config``, where that is not the folder's name in the singular.
_NOUNS = {"sensors": "sensor set", "simulation": "set of imperfections", "limits": "set of limits"}


def _part(kind: str) -> str:
    """Name the file of a robot's folder that holds its configuration of ``kind``."""
    return "robot.yaml" if kind == "robots" else f"{kind}.yaml"
