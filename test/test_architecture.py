"""The picture in docs/architecture.md is true: layers, arrows between them, and where ROS may be imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "contact_estimation"
GROUND = {"atomic_write", "exceptions", "plugins", "settings"}
#: Importable only where ROS is installed.
ROS = re.compile(
    r"^(rclpy|rosidl_\w+|ament_\w+|launch|launch_ros|\w+_msgs|std_srvs|contact_estimation\.(msg|srv))(\.|$)"
)


def layers() -> dict[str, set[str]]:
    """Layer -> layers it may import, read from the table of docs/architecture.md."""
    table = {}
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`\w+`", cells[0]):
            table[cells[0].strip("`")] = cells[2]
    allowed = {}
    for layer, text in table.items():
        named = set(re.findall(r"`(\w+)`", text))
        if text == "-":
            allowed[layer] = set()
        elif text.startswith("everything"):
            allowed[layer] = set(table) - named
        else:
            allowed[layer] = {word.strip() for word in text.split(",")}
    return allowed


LAYERS = layers()


def imports(path: Path, source: str | None = None) -> list[tuple[int, str]]:
    """(line, absolute dotted name) of every import statement of a module, wherever it stands."""
    source = path.read_text() if source is None else source
    package = ["contact_estimation", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def named(path: Path, source: str | None = None) -> list[tuple[int, str]]:
    """(line, name) of every string that is the name of a module of the package: what tables and import_module go by."""
    tree = ast.parse(path.read_text() if source is None else source, str(path))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"contact_estimation(\.\w+)+", node.value)
    ]


def layer_of(path: Path) -> str:
    """The layer a file stands in, or its own name on the ground floor."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def layer_imported(name: str) -> str | None:
    """The layer (or ground-floor module) that an absolute dotted name belongs to; None outside the package."""
    parts = name.split(".")
    if parts[0] != "contact_estimation" or len(parts) == 1:
        return None
    target = parts[1]
    return target if (PACKAGE / target).is_dir() or (PACKAGE / f"{target}.py").is_file() else None


FILES = sorted(PACKAGE.rglob("*.py"))


def test_table_names_the_layers_that_exist():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(LAYERS) == folders
    for layer, allowed in LAYERS.items():
        assert allowed <= set(LAYERS), f"{layer} may import layers that do not exist: {allowed - set(LAYERS)}"


def test_arrows_have_no_circle():
    def below(layer, seen):
        assert layer not in seen, f"circle: {' -> '.join([*seen, layer])}"
        for lower in LAYERS[layer] - {layer}:
            below(lower, [*seen, layer])

    for layer in LAYERS:
        below(layer, [])


@pytest.mark.parametrize("walk, most", [("sample", 15), ("setting", 4)])
def test_a_walk_opens_few_files_that_exist(walk, most):
    """The tables of docs/architecture.md: from the driver to the marker, from the YAML key to the generated code."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition(f"## The walk of one {walk}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert 3 < len(rows) <= most
    for name in re.findall(r"`([\w/]+/\w+\.(?:py|yaml))`", "\n".join(rows)):
        assert (PACKAGE / name).exists() or (ROOT / name).exists(), name


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    layer = layer_of(path)
    if layer in LAYERS:
        allowed = LAYERS[layer] | {layer} | GROUND
    else:
        allowed = GROUND if layer in GROUND else set(LAYERS) | GROUND | {"cli"}
    for line, name in imports(path) + named(path):
        target = layer_imported(name)
        assert target is None or target in allowed, f"{path.name}:{line}: {layer} must not import {target} ({name})"


def test_no_file_is_longer_than_500_lines():
    assert not [str(path) for path in FILES if len(path.read_text().splitlines()) > 500]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_ros_stays_upstairs(path):
    if layer_of(path) in ("ros", "nodes"):
        return
    for line, name in imports(path):
        assert not ROS.match(name), f"{path.name}:{line}: {name} may be imported in ros and nodes only"


def test_imports_are_found_wherever_they_hide():
    """The reader above sees relative, nested and by-name imports; otherwise the tests above would prove nothing."""
    planted = "def f():\n    from ..nodes import estimator\n    import rclpy\n    g('contact_estimation.viz.report')\n"
    path = PACKAGE / "filters" / "planted.py"
    names = [name for _, name in imports(path, planted) + named(path, planted)]
    assert {"contact_estimation.nodes.estimator", "rclpy", "contact_estimation.viz.report"} <= set(names)
    assert layer_imported("contact_estimation.nodes.estimator") == "nodes"
    assert ROS.match("rclpy") and ROS.match("sensor_msgs.msg") and ROS.match("contact_estimation.msg")


def test_core_imports_without_ros():
    """Every module below ``ros`` imports in a process in which no ROS module can be found."""
    modules = [
        ".".join(("contact_estimation", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in FILES
        if layer_of(path) not in ("ros", "nodes") and path.stem != "__main__"
    ]
    program = (
        "import importlib, importlib.abc, re, sys\n"
        "class NoRos(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if re.match({ROS.pattern!r}, name): raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, NoRos())\n"
        "OPTIONAL = {'rtde_receive', 'rtde_control', 'dashboard_client', 'viser'}\n"
        f"for module in {modules!r}:\n"
        "    try: importlib.import_module(module)\n"
        "    except ModuleNotFoundError as error:\n"
        "        if error.name not in OPTIONAL: raise\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
