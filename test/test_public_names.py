"""What ``import contact_estimation`` offers, and what it costs."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import contact_estimation

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = [path for folder in ("scripts", "benchmark", "examples") for path in sorted((ROOT / folder).glob("*.py"))]


def test_import_of_the_package_loads_no_heavy_module():
    program = (
        "import sys; before = set(sys.modules); import contact_estimation; new = set(sys.modules) - before; "
        "print(*sorted(name.split('.')[0] for name in new)); print(len(new))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    names, count = done.stdout.splitlines()
    assert {"numpy", "scipy", "casadi", "pinocchio", "mujoco", "matplotlib", "yaml"}.isdisjoint(names.split())
    assert int(count) < 60, names


@pytest.mark.parametrize("name", contact_estimation.__all__)
def test_every_public_name_is_there(name):
    value = getattr(contact_estimation, name)
    assert isinstance(value, str) or value.__name__ == name
    assert name in dir(contact_estimation)


def test_type_checkers_see_exactly_the_public_names():
    tree = ast.parse(Path(contact_estimation.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {f"{node.module}.{alias.name}" for node in block.body for alias in node.names}
    assert seen == {f"{module}.{name}" for name, module in contact_estimation._HOME.items()}


def test_unknown_name_lists_the_public_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'open_strem'; public are: .*open_stream"):
        _ = contact_estimation.open_strem


def test_types_are_shipped():
    assert (ROOT / "contact_estimation" / "py.typed").is_file()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_a_script_imports_of_the_package_is_there(path):
    """Most scripts run by hand only: a name that has moved would be noticed late."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "contact_estimation":
            continue
        module = importlib.import_module(node.module)
        for name in (alias.name for alias in node.names):
            assert hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}"), f"{node.module}.{name}"
