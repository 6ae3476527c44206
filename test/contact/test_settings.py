"""What a contact's settings refuse."""

import pytest

from contact_estimation.contact import ContactSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import from_mapping


@pytest.mark.parametrize(
    "mapping, words",
    [
        ({}, "key 'stiffness' is missing"),
        ({"stiffness": [0, 0, 0]}, "f.yaml: contact 'contact_1': key 'stiffness' is zero"),
        ({"stiffness": [0, 1]}, "'stiffness' has 2 entries, expected 3"),
        ({"stiffness": [0, 0, float("nan")]}, r"'stiffness\[2\]' must be finite"),
        ({"stiffness": [0, 0, 1], "estimate": ["stifness"]}, "nearest: 'stiffness'"),
        ({"stiffness": [0, 0, 1], "estimate": ["rest", "rest"]}, "'estimate' names a parameter twice"),
        ({"stiffness": [0, 0, 1], "rest_std": -1.0}, "'rest_std' must not be negative, found -1.0 m"),
        ({"stiffness": [0, 0, 1], "rest": "end"}, "'rest'"),
        ({"stiffness": [0, 0, 1], "rset": "start"}, "unknown key 'rset'; the nearest known key is 'rest'"),
    ],
)
def test_bad_settings_name_file_and_key(mapping, words):
    with pytest.raises(ConfigError, match=words):
        from_mapping(ContactSettings, mapping, "f.yaml")


def test_defaults():
    contact = from_mapping(ContactSettings, {"stiffness": [0, 0, "1e3"]}, "f.yaml")  # YAML 1.1 reads 1e3 as text
    assert contact.stiffness == [0.0, 0.0, 1000.0] and contact.rest == "start" and contact.estimate == []
