"""docs/configuration.md and docs/commands.md are what their scripts make of today's code, and nothing is left out."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest
from test_config import CLASSES

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


def test_every_parameter_of_a_node_is_listed():
    page = (ROOT / "docs" / "configuration.md").read_text().split("# Parameters of the nodes")[1]
    for cls in (value for value in vars(node_settings).values() if dataclasses.is_dataclass(value)):
        for field in dataclasses.fields(cls):
            assert f"| `{field.name}` |" in page, f"{cls.__name__}.{field.name}"
