"""The verb ``observability``: numbers that are no posture and no depth are refused."""

import pytest

from contact_estimation.cli import main


@pytest.mark.parametrize(
    "words, message",
    [
        (["--posture", "0", "-1.5", "1.5", "0", "0", "nan"], "--posture must hold finite joint positions [rad]"),
        (["--posture", "0", "-1.5", "1.5"], "--posture has 3 entries, robot 'ur16e' has 6 joints"),
        (["--posture", "0", "-1.5", "1.5", "0", "0", "0", "--depth", "-1"], "--depth must be greater than 0"),
    ],
)
def test_wrong_numbers_are_refused(words, message, capsys):
    assert main(["observability", "--robot", "ur16e", *words]) == 2
    assert message in capsys.readouterr().err
