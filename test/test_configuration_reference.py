"""docs/configuration.md and docs/commands.md are what their scripts make of today's code, and nothing is left out."""

import dataclasses
import importlib.util
import re
import typing
from pathlib import Path

import pytest
from test_config import CLASSES

from contact_estimation import plugins
from contact_estimation.fit.calibration.settings import Calibration
from contact_estimation.ros import node_settings

ROOT = Path(__file__).resolve().parent.parent


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name, page", [("configuration_reference", "configuration"), ("command_reference", "commands")]
)
def test_the_page_is_fresh(name, page):
    assert (ROOT / "docs" / f"{page}.md").read_text() == script(name).page(), f"run python scripts/{name}.py"


def test_every_settings_class_has_its_section():
    page = (ROOT / "docs" / "configuration.md").read_text()
    for cls in CLASSES:
        if not cls.__module__.startswith("contact_estimation.commands"):
            assert f"`{cls.__module__}.{cls.__qualname__}`" in page


def test_every_settings_class_is_read_from_somewhere():
    """A class that no file, no node and no command fills has constants, not keys."""
    source = "".join(path.read_text() for path in (ROOT / "contact_estimation").rglob("*.py"))
    named = set(re.findall(r"\b(?:from_yaml|from_mapping|load_task|replace)\(\s*(\w+)\b", source))
    kinds = [(group, kind) for group in (plugins.DRIVERS, plugins.OBSERVERS) for kind in plugins.offered(group)]
    chosen = [plugins.settings_of(plugins.load(group, kind), kind) for group, kind in kinds]
    read = [cls for cls in CLASSES if cls.__name__ in named] + chosen
    hints = [hint for cls in CLASSES for hint in typing.get_type_hints(cls).values()]
    nested = [part for hint in hints for part in (hint, *typing.get_args(hint))]
    unread = [cls for cls in CLASSES if cls not in nested and not any(issubclass(r, cls) for r in read)]
    assert unread == [Calibration]  # a file that is written for people


def test_every_parameter_of_a_node_is_listed():
    page = (ROOT / "docs" / "configuration.md").read_text().split("# Parameters of the nodes")[1]
    for cls in (value for value in vars(node_settings).values() if dataclasses.is_dataclass(value)):
        for field in dataclasses.fields(cls):
            assert f"| `{field.name}` |" in page, f"{cls.__name__}.{field.name}"
