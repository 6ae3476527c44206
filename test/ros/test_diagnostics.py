"""Diagnostics tell validity, reason, counters and cost."""

from collections import Counter

from diagnostic_msgs.msg import DiagnosticStatus

from contact_estimation.ros.diagnostics import StreamHealth


def report(health, counters=(), **facts):
    (status,) = health.report(5_000_000_000, Counter(dict(counters)), facts).status
    return status, {value.key: value.value for value in status.values}


def test_levels():
    health = StreamHealth("estimator: ekf", "ur16e")
    assert report(health)[0].level == DiagnosticStatus.STALE
    assert health.add(True, "", 1e-4, 10**6)  # became valid: tell at once
    assert not health.add(True, "", 1e-4, 10**6)
    status, _ = report(health)
    assert (status.level, status.message, status.hardware_id) == (DiagnosticStatus.OK, "valid", "ur16e")
    assert health.add(False, "a gap", 1e-4, 10**6)
    assert not health.add(False, "a gap", 1e-4, 10**6)
    assert report(health)[0].level == DiagnosticStatus.ERROR and report(health)[0].level == DiagnosticStatus.STALE
    assert health.add(False, "not finite", 1e-4, 0) and health.add(True, "", 1e-4, 0)
    status, values = report(health)
    assert status.level == DiagnosticStatus.WARN and "1 of 2" in status.message and "not finite" in status.message
    assert values["last refusal"] == "not finite"


def test_values():
    health = StreamHealth("estimator", "ur16e")
    for k in range(1, 101):
        health.add(True, "", k * 1e-5, 2_000_000)
    _status, values = report(health, {"samples": 100, "duplicate": 3}, backend="c")
    assert (values["samples"], values["duplicate"], values["backend"], values["valid"]) == ("100", "3", "c", "True")
    assert abs(float(values["cost [ms] p50"]) - 0.505) < 0.01 and float(values["cost [ms] max"]) == 1.0
    assert float(values["age [ms] p50"]) == 2.0 and float(values["rate [Hz]"]) > 100


def test_every_age_is_told_but_that_of_a_recording():
    health = StreamHealth("estimator", "ur16e")
    health.add(True, "", 1e-4, None)
    assert not any(key.startswith("age") for key in report(health)[1])
    health.add(True, "", 1e-4, 108 * 10**9)
    assert float(report(health)[1]["age [ms] max"]) == 108_000.0
