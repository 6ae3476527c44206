"""Data files of a plain ``pip install .``: ament index entry, configuration, node executables for launch_ros.

The metadata is in pyproject.toml; the ROS build (messages included) is CMakeLists.txt.
"""

from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
SHARE = "share/contact_estimation"


def shipped(folder: str) -> list[tuple[str, list[str]]]:
    """(destination, files) of every directory below ``folder``, relative to the root as setuptools wants them."""
    places = {}
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            places.setdefault(path.parent.relative_to(ROOT), []).append(str(path.relative_to(ROOT)))
    return [(f"{SHARE}/{place}", files) for place, files in places.items()]


def node_executables() -> list[str]:
    """Write one launcher per file of contact_estimation/nodes into build/ and return their paths."""
    template = (ROOT / "scripts" / "launcher.py.in").read_text()
    folder = ROOT / "build" / "pip_launchers"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for node in sorted((ROOT / "contact_estimation" / "nodes").glob("[a-z]*.py")):
        launcher = folder / node.stem
        launcher.write_text(
            template.replace("@PYTHON@", "/usr/bin/env python3").replace(
                "@MODULE@", f"contact_estimation.nodes.{node.stem}"
            )
        )
        launcher.chmod(0o755)
        files.append(str(launcher.relative_to(ROOT)))
    return files


def index_marker() -> str:
    """Return the empty file that announces the package in the ament index."""
    marker = ROOT / "build" / "pip_index" / "contact_estimation"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text("")
    return str(marker.relative_to(ROOT))


setup(
    data_files=[
        ("share/ament_index/resource_index/packages", [index_marker()]),
        (SHARE, ["package.xml"]),
        ("lib/contact_estimation", node_executables()),
        *(entry for folder in ("config", "launch", "rviz", "msg") for entry in shipped(folder)),
    ]
)
