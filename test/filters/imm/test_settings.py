"""Bad settings are refused by the key that is wrong."""

import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot.actuators import ActuatorSettings, load_actuators
from contact_estimation.settings import find_config, from_mapping, load_yaml

CONTACT = {"name": "table", "normal": [0, 0, 1]}
OTHER = {"name": "wall", "normal": [1, 0, 0]}


@pytest.mark.parametrize(
    "change, text",
    [
        ({"modes": [["table"], ["table"]]}, "'modes' lists the same combination twice"),
        (
            {"modes": [["table", "wall"], ["wall", "table"]], "contacts": [CONTACT, OTHER]},
            "'modes' lists the same combination twice",
        ),
        ({"modes": [[], ["table", "table"]]}, "'modes' has a mode that names a contact twice"),
        ({"modes": [[], ["tabel"]]}, "'modes' names the contact 'tabel', which is not in 'contacts' (table)"),
        ({"modes": []}, "'modes' is empty"),
        ({"contacts": []}, "'contacts' has 0 entries"),
        ({"contacts": [CONTACT] * 2}, "contacts need different names"),
        ({"contacts": [CONTACT | {"normal": [0, 0, 0]}]}, "'normal' is zero"),
        ({"contacts": [CONTACT | {"stiffness": 0.0}]}, "contacts[0].stiffness"),
        ({"contacts": [CONTACT | {"stiffness": -2e4}]}, "contacts[0].stiffness"),
        ({"contacts": [CONTACT | {"stiffness_factor": 1.0}]}, "'stiffness_factor' must be greater than 1"),
        ({"contacts": [CONTACT | {"friction_std": -1.0}]}, "contacts[0].friction_std"),
        ({"contacts": [CONTACT | {"rest_random_walk": -1e-5}]}, "contacts[0].rest_random_walk"),
        ({"contacts": [CONTACT | {"estimate": ["stifness"]}]}, "contacts[0].estimate"),
        ({"contacts": [CONTACT | {"rest": "tuoch"}]}, "contacts[0].rest"),
        ({"contacts": [CONTACT | {"estimate": ["stiffness"]}]}, "'rest: touch' needs 'rest' among 'estimate'"),
        ({"mismatch": {"significance": 0.0}}, "mismatch.significance"),
        ({"contacts": [CONTACT | {"stifness": 2e4}]}, "the nearest known key is 'contacts[0].stiffness'"),
        ({"closed_at_start": 1.5}, "closed_at_start"),
        ({"gate": 0.0}, "gate"),
        ({"block": -0.01}, "block"),
        ({"hypotheses": 0}, "hypotheses"),
    ],
)
def test_filter_errors_name_the_key(change, text):
    with pytest.raises(ConfigError) as error:
        from_mapping(ImmSettings, {"observer": "contact_imm", "contacts": [CONTACT]} | change, "imm.yaml")
    assert text in str(error.value)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"torque_noise": [2.0, 3.0, -1.2, 0.6, 0.3, 0.25]}, "torque_noise"),
        ({"disturbance_std": [-3.0] * 6}, "disturbance_std"),
        ({"elastic": {"joints": [1], "stiffness": [3e4, 4e4]}}, "1 joints but 2 stiffnesses"),
        ({"elastic": {"joints": [1], "stiffness": [0.0]}}, "elastic.stiffness"),
        ({"elastic": {"joints": [1], "stiffness": [3e4], "noise": -1e-5}}, "elastic.noise"),
    ],
)
def test_actuator_errors_name_the_key(change, text):
    shipped = load_yaml(find_config("actuators", "ur16e"))
    with pytest.raises(ConfigError) as error:
        from_mapping(ActuatorSettings, shipped | change, "actuators.yaml")
    assert text in str(error.value)


def test_actuators_of_another_robot_are_refused():
    with pytest.raises(ConfigError, match=r"viscous has 6 entries, expected one per joint \(7\)"):
        load_actuators("ur16e").check_joints(7, "fr3")


@pytest.mark.parametrize("robot, filters", [("ur16e", 6), ("fr3", 8), ("panda", 8)])
def test_shipped_configuration_loads_with_more_hypotheses_where_torque_is_all_there_is(robot, filters):
    modes = open_stream(robot, "contact_imm").observer.chain
    assert modes.names == ["free", "contact_1", "unknown"] and len(modes.owner) == filters
