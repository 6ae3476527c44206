"""Numbers without sense on the command line: the error says what was given and what is expected, before the work."""

import pytest

from contact_estimation.cli import main

_PROBING = ["identify", "probing", "--runs", "1", "--example", "spatial"]
_PLANAR = ["identify", "planar", "--drop", "absent.npz", "--shape", "square:0.1", "--friction", "0.2"]
_FINGER = ["identify", "batch", "--example", "finger"]


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e300"])
@pytest.mark.parametrize(
    ("words", "option", "expected"),
    [
        (_PROBING, "--fork", "greater than 0 and at most 1 m"),
        (["simulate", "block"], "--seconds", "greater than 0 and at most 86400 s"),
        (["mpc", "plane"], "--duration", "greater than 0 and at most 86400 s"),
        (["mpc", "plane"], "--stiffness", "greater than 0 and at most 1e+09 N/m"),
        (["mpc", "plane"], "--force", "greater than 0 and at most 1e+06 N"),
        (["observability", "--robot", "ur16e", "--posture", "0"], "--depth", "greater than 0 and at most 1 m"),
        (_PLANAR, "--impact-duration", "greater than 0 and at most 1 s"),
        (_PLANAR, "--side", "greater than 0 and at most 100 m"),
        (_PLANAR, "--rate", "greater than 0 and at most 1e+06 Hz"),
        (_FINGER, "--duration", "at least 2.2 and at most 1000 s"),
    ],
)
def test_a_number_without_sense_is_refused(words, option, expected, value, capsys):
    assert main([*words, f"{option}={value}"]) == 2
    assert f"{option} must be {expected}, found {float(value):g}" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (_PLANAR, "--friction"),
        (_PLANAR, "--friction-std"),
        (_PLANAR, "--size-std"),
        (_PLANAR, "--noise"),
        (["fit", "absent.npz", "--robot", "ur16e", "--out", "x.yaml"], "--rest-weight"),
    ],
)
def test_a_negative_number_is_refused(words, option, value, capsys):
    assert main([*words, f"{option}={value}"]) == 2
    assert f"{option} must be at least 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["mpc", "plane", "--height-error=nan"], "--height-error must be at least -1 and at most 1 m, found nan"),
        ([*_FINGER, "--window", "0", "nan"], "--window must be finite, found nan"),
        ([*_FINGER, "--starts", "0"], "--starts must be at least 1, found 0"),
        ([*_FINGER, "--cross-validate", "0"], "--cross-validate must be at least 2 and at most 1000, found 0"),
        ([*_FINGER, "--window", "1", "0"], "--window is a part of a RECORDING; an example has --duration"),
        (["rtde-server", "--seconds", "inf"], "found inf: leave it out to serve until Ctrl-C"),
        (["rtde-server", "--realtime-priority", "1000"], "--realtime-priority must be at least 0 and at most 99"),
        (
            ["simulate", "block", "--scale", "torque=inf"],
            "the scale of 'torque' must not be negative or above 1e+06, found inf",
        ),
        (["replay", "absent.npz", "--robot", "ur16e", "--rate", "inf"], "--rate must be greater than 0 Hz and finite"),
    ],
)
def test_other_ranges(words, text, capsys):
    assert main(words) == 2
    assert text in capsys.readouterr().err
