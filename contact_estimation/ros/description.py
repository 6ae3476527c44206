"""What a launch shows of an arm: its description for robot_state_publisher, and RViz' configuration.

As :mod:`contact_estimation.ros.bringup` it imports the standard library and YAML only.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import yaml

from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import find_config, find_urdf, load_yaml, share_file


class LaunchedRobot:
    """What a launch has to know of an arm, read without its dynamics.

    Args:
        choice: name of a shipped robot, or path of a profile.
        tool: behind the flange; empty: the robot's own.

    Raises:
        ConfigError: there is no such robot.
    """

    def __init__(self, choice: str, tool: str) -> None:
        path = find_config("robots", choice)
        self.values = load_yaml(path)
        self.folder = Path(self.values.get("folder") or path.resolve().parent)
        self.name = str(self.values["name"])
        own = str(self.values.get("tool", ""))
        self.tool = tool or (str(self.folder / own) if own.endswith((".yaml", ".yml")) else own)

    def urdf(self, prefix: str = "") -> str:
        """Text of its description with the tool, every link named behind ``prefix``.

        It is looked for where :func:`~contact_estimation.robot.description.urdf_path` looks.

        Raises:
            ConfigError: there is no URDF.
        """
        name = self.values["urdf"]
        path = find_urdf(name, self.folder)
        if path is None:
            raise ConfigError(
                f"robot '{self.name}': no URDF '{name}' in {self.folder}; correct 'urdf' in its robot.yaml"
            )
        return prefix_links(self._with_tool(path.read_text()), prefix)

    def _with_tool(self, text: str) -> str:
        if not self.tool:
            return text
        from contact_estimation.robot.tool import add_tool, load_tool  # imports Pinocchio, which few launches need

        return add_tool(text, load_tool(self.tool, self.folder), str(self.values["tcp_frame"]))


def prefix_links(urdf: str, prefix: str) -> str:
    """Put ``prefix`` in front of every link of a URDF; joints keep their names, as in the joint states.

    The prefix is part of the description, as in those of arms' own drivers: RViz puts a '/' behind a prefix of its own.
    """
    if not prefix:
        return urdf
    root = ElementTree.fromstring(urdf)
    for link in root.findall("link"):
        link.set("name", prefix + link.get("name", ""))
    for end in (*root.findall("joint/parent"), *root.findall("joint/child")):
        end.set("link", prefix + end.get("link", ""))
    return ElementTree.tostring(root, encoding="unicode")


def rviz_config(namespace: str, tf_prefix: str, base_frame: str) -> str:
    """Adapt RViz' configuration to one arm: its fixed frame and its topics."""
    config = yaml.safe_load(share_file("rviz", "contact.rviz").read_text())
    manager = config["Visualization Manager"]
    manager["Global Options"]["Fixed Frame"] = tf_prefix + base_frame
    for display in manager["Displays"]:
        for topic in (display[key] for key in ("Topic", "Description Topic") if key in display):
            topic["Value"] = (f"/{namespace}" if namespace else "") + topic["Value"]
    return str(yaml.safe_dump(config, sort_keys=False))
