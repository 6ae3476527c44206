"""Files for RViz, PlotJuggler and diagnostic_aggregator: they use only names that these programs read.

A program of these drops an unknown name without a word. The names are those of their sources, which are named here.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from contact_estimation.ros import bringup
from contact_estimation.ros.description import prefix_links

ROOT = Path(__file__).resolve().parent.parent
#: rviz_common/src/rviz_common/display.cpp and ros_topic_display.hpp, properties/qos_profile_property.cpp.
DISPLAY = {"Class", "Name", "Enabled"}
TOPIC = {"Value", "Depth", "History Policy", "Reliability Policy", "Durability Policy"}
#: Values of QoS policies in qos_profile_property.cpp; a subscriber asks for no more than the publisher offers.
POLICIES = {"Keep Last", "Reliable", "Best Effort", "Transient Local", "Volatile"}
#: Properties of rviz_default_plugins/src/rviz_default_plugins/displays/*/*_display.cpp (14.1, jazzy).
DISPLAYS = {
    "Grid": {"Cell Size", "Plane Cell Count", "Color", "Alpha"},
    "RobotModel": {"Description Source", "Description Topic", "Visual Enabled", "Collision Enabled", "Alpha"},
    "MarkerArray": {"Topic"},
    "Wrench": {
        *("Topic", "Accept NaN Values", "Force Arrow Scale", "Torque Arrow Scale", "Arrow Width", "History Length")
    },
    "TF": {"Marker Scale", "Show Names", "Show Axes", "Show Arrows"},
}
#: rviz_common: visualization_manager.cpp, view_manager.cpp, visualization_frame.cpp, properties/property_tree_*.cpp;
#: rviz_default_plugins: view_controllers/orbit/orbit_view_controller.cpp, transformation/, plugins_description.xml.
REST = {
    "Panels": [
        {
            "Class": "rviz_common/Displays",
            "Name": ...,
            "Tree Height": ...,
            "Help Height": ...,
            "Property Tree Widget": {"Expanded": ..., "Splitter Ratio": ...},
        },
        {"Class": "rviz_common/Views", "Name": ..., "Expanded": ...},
    ],
    "Visualization Manager": {
        "Class": ...,
        "Displays": ...,
        "Enabled": ...,
        "Global Options": {"Background Color": ..., "Fixed Frame": ..., "Frame Rate": ...},
        "Name": ...,
        "Tools": [{"Class": "rviz_default_plugins/Interact"}, {"Class": "rviz_default_plugins/MoveCamera"}],
        "Transformation": {"Current": {"Class": "rviz_default_plugins/TF"}},
        "Views": {
            "Current": {
                "Class": "rviz_default_plugins/Orbit",
                "Name": ...,
                "Distance": ...,
                "Focal Point": {"X": ..., "Y": ..., "Z": ...},
                "Pitch": ...,
                "Yaw": ...,
            },
            "Saved": ...,
        },
    },
    "Window Geometry": {"Height": ..., "Width": ...},
}
#: plotjuggler_app/mainwindow.cpp, tabbedplotwidget.cpp, plot_docker.cpp and plotwidget.cpp (3.9).
PLOTJUGGLER = {
    "root": {"version"},
    "tabbed_widget": {"parent", "name"},
    "Tab": {"containers", "tab_name"},
    "Container": set(),
    "DockSplitter": {"sizes", "orientation", "count"},
    "DockArea": {"name"},
    "plot": {"mode", "style"},
    "curve": {"name", "color"},
    "currentTabIndex": {"index"},
    "use_relative_time_offset": {"enabled"},
}
#: Status names of a graph with the namespace of an arm, and without -> group of diagnostics.yaml.
STATUSES = {
    "estimator: contact_imm": "estimators",
    "left/momentum_observer: momentum": "estimators",
    "driver: samples": "driver",
    "left/guard: equilibrium": "driver",
    "left/mpc": "mpc",
    "recorder": "recorder",
    "ur_robot_driver: controller": None,
    "controller_manager: estimator_broadcaster": None,
}


@pytest.fixture
def rviz() -> dict:
    return yaml.safe_load((ROOT / "rviz" / "contact.rviz").read_text())


def unknown(config, known, where: str = "") -> list[str]:
    """Keys of ``config`` that ``known`` lacks; ``...`` takes any value."""
    if known is ... or config == known:
        return []
    if isinstance(known, dict) and isinstance(config, dict):
        strange = [f"{where}/{key}" for key in config.keys() - known.keys()]
        return strange + [
            x for key in config.keys() & known for x in unknown(config[key], known[key], f"{where}/{key}")
        ]
    if isinstance(known, list) and isinstance(config, list) and len(known) == len(config):
        return [x for k, pair in enumerate(zip(config, known)) for x in unknown(*pair, f"{where}/{k}")]
    return [where]


def topics(config: dict) -> set[str]:
    displays = config["Visualization Manager"]["Displays"]
    return {display[key]["Value"] for display in displays for key in ("Topic", "Description Topic") if key in display}


def test_rviz_reads_every_name(rviz):
    assert not unknown(rviz, REST)
    displays = rviz["Visualization Manager"]["Displays"]
    assert {display["Class"] for display in displays} == {f"rviz_default_plugins/{name}" for name in DISPLAYS}
    for display in displays:
        assert display.keys() <= DISPLAY | DISPLAYS[display["Class"].split("/")[1]], display["Name"]
        for topic in (display[key] for key in ("Topic", "Description Topic") if key in display):
            assert topic.keys() == TOPIC
            assert {value for key, value in topic.items() if key.endswith("Policy")} <= POLICIES


def test_rviz_subscribes_to_what_is_published(rviz):
    outputs = (ROOT / "contact_estimation" / "ros" / "outputs.py").read_text()
    mpc = (ROOT / "contact_estimation" / "nodes" / "mpc.py").read_text()
    for topic in topics(rviz) - {"/robot_description"}:
        node, name = topic.strip("/").split("/")
        assert f'"~/{name}"' in mpc if node == "mpc" else f'"{name}"' in outputs, topic


def test_rviz_follows_namespace_prefix_and_robot(rviz):
    planned = bringup.plan({"rviz": "true", "robot": "fr3", "namespace": "left", "tf_prefix": "left_"})
    config = yaml.safe_load(planned.rviz_config)
    fixed = config["Visualization Manager"]["Global Options"]["Fixed Frame"]
    assert fixed == "left_fr3_link0" and all(topic.startswith("/left/") for topic in topics(config))
    links = re.findall(r'<link name="([^"]*)"', planned.description.parameters["robot_description"])
    assert fixed in links and all(link.startswith("left_") for link in links)
    assert topics(yaml.safe_load(bringup.plan({"rviz": "true"}).rviz_config)) == topics(rviz)


def test_a_prefix_renames_links_and_no_joint():
    arm = '<robot name="arm"><link name="a"/><link name="b"/>'
    arm += '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
    root = ElementTree.fromstring(prefix_links(arm, "left_"))
    assert [link.get("name") for link in root.findall("link")] == ["left_a", "left_b"]
    (joint,) = root.findall("joint")
    assert (joint.get("name"), joint.find("parent").get("link"), joint.find("child").get("link")) == (
        *("j", "left_a", "left_b"),
    )


def test_plotjuggler_reads_every_name():
    layout = ElementTree.parse(ROOT / "rviz" / "plotjuggler.xml").getroot()
    for element in layout.iter():
        assert set(element.keys()) <= PLOTJUGGLER[element.tag], element.tag
    for splitter in layout.iter("DockSplitter"):
        assert int(splitter.get("count")) == len(splitter) == len(splitter.get("sizes").split(";"))


def test_every_status_has_its_group_of_the_aggregator():
    """generic_analyzer.cpp of diagnostic_aggregator (4.0): its node is analyzers, a regex takes the whole name."""
    (node, content), *others = yaml.safe_load((ROOT / "rviz" / "diagnostics.yaml").read_text()).items()
    analyzers = {key: value for key, value in content["ros__parameters"].items() if key != "path"}
    assert node == "analyzers" and not others
    for analyzer in analyzers.values():
        assert analyzer.keys() == {"type", "path", "regex"}
        assert analyzer["type"] == "diagnostic_aggregator/GenericAnalyzer"
    for status, group in STATUSES.items():
        found = [name for name, a in analyzers.items() if any(re.fullmatch(regex, status) for regex in a["regex"])]
        assert found == ([group] if group else []), status
