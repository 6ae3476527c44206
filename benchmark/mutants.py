"""Mutations of one line each, grouped by file and the tests that should notice: name, text, what replaces it."""

from __future__ import annotations

MORE: dict[tuple[str, str], list[tuple[str, str, str]]] = {
    ("filters/stream.py", "test/filters/test_stream.py"): [
        ("stream: NaN passes", "if not np.isfinite(sample).all():", "if False:"),
        ("stream: sizes are not compared", "fits = len(q) == len(dq) == len(tau) == sample.shape[1]", "fits = True"),
        (
            "stream: a velocity beyond the limit passes",
            "if (np.abs(sample[1]) > self._max_velocity).any():",
            "if False:",
        ),
        ("stream: a jump of position passes", "> self._max_velocity * max(dt, self._period)).any():", "> 1e9).any():"),
        ("stream: effort is not scaled", "sample[2] *= self._scale", "sample[2] *= 1.0"),
        ("stream: compensated gravity is not put back", "self._sample[2] += self.arm.gravity(self._sample[0])", "pass"),
        ("stream: time that runs back is no restart", 'self.counters["backward"] += 1', "return False"),
        ("stream: gaps are one long step", "steps = max(1, round(dt / self._period))", "steps = 1"),
        ("stream: a diverged observer stays valid", "valid = self.valid and estimate.valid and finite", "valid = True"),
    ],
    ("filters/zero.py", "test/filters/test_zero.py"): [
        ("zero: a moving arm is zeroed", "if abs(dq[fastest]) > MAX_SPEED:", "if False:"),
        ("zero: the offset is added", "tau -= self.offset", "tau += self.offset"),
        ("zero: gravity is zeroed too", "residuals.append(tau - self._arm.gravity(q))", "residuals.append(1.0 * tau)"),
    ],
    ("filters/momentum.py", "test/filters/test_momentum.py"): [
        ("momentum: no drift term", 'self._integral += dt * (out["drift"] + tau)', "self._integral += dt * tau"),
        ("momentum: the residual is not fed back", "self._integral += dt * self._residual", "pass"),
        ("momentum: a reset keeps the residual", "self._residual[:] = 0.0", "pass"),
        ("momentum: the force stays in base axes", "force_tcp = rotation.T @ wrench[:3]", "force_tcp = wrench[:3]"),
    ],
    ("control/safety.py", "test/control/test_safety.py"): [
        ("safety: no limit of force", "safe = clip_norm(spring, self.settings.max_force)", "safe = spring"),
        ("safety: no workspace", "position = np.clip(position, self._lower, self._upper)", "pass"),
        ("safety: a stop does not latch", "self._stopped = True\n", "self._stopped = False\n"),
        (
            "safety: what is not finite passes",
            "if state is SafetyState.HOLD or not finite:",
            "if state is SafetyState.HOLD:",
        ),
        ("safety: no rate", '("rate", self.settings.max_rate * dt)', '("rate", 1e9)'),
        ("safety: no step", '("step", self.settings.max_step)', '("step", 1e9)'),
        ("safety: no turn rate", "clip_norm(turn, self.settings.max_turn_rate * dt)", "clip_norm(turn, 1e9)"),
        ("deadman: a clock that ran back is trusted", "if age < 0 or age >", "if age >"),
    ],
    ("ros/command_gate.py", "test/ros/test_command_gate.py"): [
        ("gate: any quaternion passes", "if not np.isfinite(norm) or abs(norm - 1.0) > 1e-3:", "if False:"),
        (
            "gate: a dead estimator does not stop it",
            "if state is SafetyState.STOP and self._sample is not None:",
            "if False:",
        ),
        ("gate: bad estimates count", "        if problem:\n", "        if False:\n"),
    ],
    ("ros/staleness.py", "test/ros/test_staleness.py"): [
        ("rule: estimates of the future count", "if not abs(age) <= self._max_age:", "if not age <= self._max_age:"),
        ("rule: any robot counts", "or tuple(message.joint_names) not in self._joints", ""),
        ("rule: invalid estimates count", "if not message.valid:", "if False:"),
    ],
    ("ros/convert.py", "test/ros/test_convert.py"): [
        (
            "convert: joints keep the message's order",
            "values.append(np.array(data)[self._columns])",
            "values.append(np.array(data))",
        ),
        ("convert: lengths are not compared", "if len(data) != count:", "if False:"),
        (
            "convert: stamps lose their nanoseconds",
            "int(stamp.sec * 1_000_000_000 + stamp.nanosec)",
            "int(stamp.sec * 1_000_000_000)",
        ),
    ],
    ("drivers/joint_torque.py", "test/drivers/test_joint_torque.py"): [
        ("joint torque: motion gives a verdict", "if np.abs(dq).max() > s.standstill_speed:", "if False:"),
        (
            "joint torque: NaN passes",
            "if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(raw).all()):",
            "if False:",
        ),
        (
            "joint torque: the first columns are used",
            "(np.array(values, float)[columns] for",
            "(np.array(values, float)[: len(columns)] for",
        ),
    ],
    ("io/recovery.py", "test/io/test_recovery.py"): [
        ("recovery: no end is written", "target.write(_END)", "pass"),
        ("recovery: the last half record stays", "target.truncate(size)", "pass"),
    ],
}
