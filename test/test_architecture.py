"""The picture in docs/architecture.md is true: rooms, arrows between them, and where ROS may be imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "contact_estimation"
GROUND = {"exceptions", "settings"}
#: Importable only where ROS is installed.
ROS = re.compile(
    r"^(rclpy|rosidl_\w+|ament_\w+|launch|launch_ros|\w+_msgs|std_srvs|contact_estimation\.(msg|srv))(\.|$)"
)


def rooms() -> dict[str, set[str]]:
    """Room -> rooms it may import, read from the table of docs/architecture.md."""
    table = {}
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`\w+`", cells[0]):
            table[cells[0].strip("`")] = cells[2]
    allowed = {}
    for room, text in table.items():
        named = set(re.findall(r"`(\w+)`", text))
        if text == "-":
            allowed[room] = set()
        elif text.startswith("everything"):
            allowed[room] = set(table) - named
        else:
            allowed[room] = {word.strip() for word in text.split(",")}
    return allowed


ROOMS = rooms()


def imports(path: Path, source: str | None = None) -> list[tuple[int, str]]:
    """(line, absolute dotted name) of every import statement of a module, wherever it stands."""
    source = path.read_text() if source is None else source
    package = ["contact_estimation", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def named(path: Path, source: str | None = None) -> list[tuple[int, str]]:
    """(line, name) of every string that is the name of a module of the package: what tables and import_module go by."""
    tree = ast.parse(path.read_text() if source is None else source, str(path))
    return [(node.lineno, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and re.fullmatch(r"contact_estimation(\.\w+)+", node.value)]


def room_of(path: Path) -> str:
    """The room a file stands in, or its own name on the ground floor."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def room_imported(name: str) -> str | None:
    """The room (or ground-floor module) that an absolute dotted name belongs to; None outside the package."""
    parts = name.split(".")
    if parts[0] != "contact_estimation" or len(parts) == 1:
        return None
    target = parts[1]
    return target if (PACKAGE / target).is_dir() or (PACKAGE / f"{target}.py").is_file() else None


FILES = sorted(PACKAGE.rglob("*.py"))


def test_table_names_the_rooms_that_exist():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ROOMS) == folders
    for room, allowed in ROOMS.items():
        assert allowed <= set(ROOMS), f"{room} may import rooms that do not exist: {allowed - set(ROOMS)}"


def test_arrows_have_no_circle():
    def below(room, seen):
        assert room not in seen, f"circle: {' -> '.join([*seen, room])}"
        for lower in ROOMS[room] - {room}:
            below(lower, [*seen, room])

    for room in ROOMS:
        below(room, [])


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    room = room_of(path)
    if room in ROOMS:
        allowed = ROOMS[room] | {room} | GROUND
    else:
        allowed = GROUND if room in GROUND else set(ROOMS) | GROUND | {"cli"}
    for line, name in imports(path) + named(path):
        target = room_imported(name)
        assert target is None or target in allowed, f"{path.name}:{line}: {room} must not import {target} ({name})"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_ros_stays_upstairs(path):
    if room_of(path) in ("ros", "nodes"):
        return
    for line, name in imports(path):
        assert not ROS.match(name), f"{path.name}:{line}: {name} may be imported in ros and nodes only"


def test_imports_are_found_wherever_they_hide():
    """The reader above sees relative, nested and by-name imports; otherwise the tests above would prove nothing."""
    planted = "def f():\n    from ..nodes import estimator\n    import rclpy\n    g('contact_estimation.viz.report')\n"
    path = PACKAGE / "filters" / "planted.py"
    names = [name for _, name in imports(path, planted) + named(path, planted)]
    assert {"contact_estimation.nodes.estimator", "rclpy", "contact_estimation.viz.report"} <= set(names)
    assert room_imported("contact_estimation.nodes.estimator") == "nodes"
    assert ROS.match("rclpy") and ROS.match("sensor_msgs.msg") and ROS.match("contact_estimation.msg")


def test_core_imports_without_ros():
    """Every module below ``ros`` imports in a process in which no ROS module can be found."""
    modules = [
        ".".join(("contact_estimation", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in FILES
        if room_of(path) not in ("ros", "nodes") and path.stem != "__main__"
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
        "        if error.name not in OPTIONAL: raise\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
