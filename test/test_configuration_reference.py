"""docs/configuration.md is what its script makes of today's settings classes, and no class is left out."""

import importlib.util
from pathlib import Path

from test_config import CLASSES

ROOT = Path(__file__).resolve().parent.parent


def script():
    spec = importlib.util.spec_from_file_location(
        "configuration_reference", ROOT / "scripts" / "configuration_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_fresh():
    assert (ROOT / "docs" / "configuration.md").read_text() == script().page(), (
        "run python scripts/configuration_reference.py"
    )


def test_every_settings_class_has_its_section():
    page = (ROOT / "docs" / "configuration.md").read_text()
    for cls in CLASSES:
        if not cls.__module__.startswith("contact_estimation.commands"):
            assert f"`{cls.__module__}.{cls.__qualname__}`" in page
