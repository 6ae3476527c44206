"""Mutations of one line each, grouped by file and the tests that should notice: name, text, what replaces it."""

from __future__ import annotations

MORE: dict[tuple[str, str], list[tuple[str, str, str]]] = {
    ("filters/stream.py", "test/filters/test_stream.py test/filters/test_stream_gaps.py"): [
        ("stream: the velocity of a slow stream holds", "last[2] = now[2]", "last[1:] = now[1:]"),
        ("stream: what is beyond a limit passes", "if limits.beyond():", "if False:"),
        ("stream: sizes are not compared", "fits = len(q) == len(dq) == len(tau) == self.arm.n", "fits = True"),
        ("stream: a jump of position passes", "if limits.jumped(max(dt, self._period)):", "if False:"),
        ("stream: compensated gravity is not put back", "self._torque += self.arm.gravity(self._q)", "pass"),
        ("stream: time that runs back is no restart", 'self.counters["backward"] += 1', "return False"),
        ("stream: a sample out of order is a restart", "if not self._out_of_order and", "if False and"),
        ("stream: a clock that steps is time", "        if stepped:\n", "        if False:\n"),
        ("stream: gaps have the velocity of their end", "if dt <= self.sensors.longest_period:", "if True:"),
        ("stream: a slow stream is interpolated", "if dt <= self.sensors.longest_period:", "if False:"),
        (
            "stream: bad signals teach friction",
            "doubted = self._problem or self.monitor.problem or time",
            "doubted = time",
        ),
        ("stream: a pause needs no settling", "            if unseen is not None:", "            if False:"),
        ("stream: a queue behind a gap is time", "self._clock_steps.skip()", "pass"),
        ("stream: gaps are one long step", "steps = max(1, round(dt / self._period))", "steps = 1"),
        ("stream: a diverged observer stays valid", "        if not finite:\n", "        if False:\n"),
        ("stream: a diverged observer goes on", "            self.restart(settle=True)\n", ""),
        ("stream: clock steps are not forgotten", "        self._clock_steps.reset()\n", ""),
        ("stream: every gap is a pause", "paused = stays and", "paused ="),
        ("stream: no gap is a pause", "        if paused and not zeroed:\n", "        if False:\n"),
    ],
    ("filters/localization/localizer.py", "test/filters/localization/test_localizer.py"): [
        ("localization: large links are likelier", "surface.area / links[surface.link]", "surface.area"),
        ("localization: any torque is a push", "if misfit > self._limit:", "if False:"),
    ],
    ("filters/sample_limits.py", "test/filters/test_sample_limits.py test/filters/test_stream.py"): [
        ("limits: effort is not scaled", "torque = s.scale * s.effort", "torque = 1.0 * s.effort"),
        ("limits: any velocity passes", "(s.dq, s.max_velocity), (torque", "(0 * s.dq, s.max_velocity), (torque"),
        ("limits: NaN passes", "beyond = 3 * n - ca.sum1", "beyond = 0 * ca.sum1"),
    ],
    ("filters/plausibility/monitor.py", "test/filters/plausibility/test_monitor.py"): [
        (
            "monitor: a spike is used",
            "if spike > 1.0 and self._spikes < 2 and not self.intervals.problem:",
            "if False:",
        ),
        ("monitor: contradictions are not noted", "if worst > 1.0:", "if False:"),
        ("monitor: rest proves agreement", "and (self._to_agree <= 0).all()", ""),
    ],
    ("filters/plausibility/torque_readings.py", "test/filters/plausibility/test_torque_readings.py"): [
        ("readings: nothing is ever proven", "return self.margin > _BETTER", "return self.margin < -1.0"),
        ("readings: everything is proven", "return self.margin > _BETTER", "return self.margin >= 0.0"),
        (
            "readings: a restart forgets",
            "        self._past: deque",
            "        self.margin[:] = 0.0\n        self._past: deque",
        ),
        ("readings: a spike is a step", "if size < STEP or np.linalg.norm", "if False and np.linalg.norm"),
    ],
    ("filters/plausibility/suspicion.py", "test/filters/plausibility/test_torque_readings.py"): [
        (
            "suspicion: a push at rest may be another reading",
            "if self._noise is None or self._noise.blocks < _KEPT:\n            return",
            "if True: return",
        ),
        ("suspicion: a wrist that fails at rest is pushed", "(changed[0] & ~self._lone)", "changed[0]"),
        ("suspicion: every posture is the same rest", "or np.abs(q - self._q).max() > _SAME_POSTURE", ""),
    ],
    ("filters/stream.py", "test/filters/plausibility/test_steps.py"): [
        (
            "stream: behind positions that jumped all stays proven",
            "None if self._limits.jumped(dt) else self._unseen(dt)",
            "self._unseen(dt)",
        )
    ],
    ("filters/plausibility/delays.py", "test/filters/plausibility/test_delays.py"): [
        ("delays: only what is explained counts", "if self.found >= 0 else np.ones_like(self._weight)", ""),
        ("delays: an early torque tells nothing", "np.fmin(without, advanced.min())", "without"),
        ("delays: no free arm is asked for", "(delayed < RIVAL_FREE * self._weight)", "(delayed > -1.0)"),
        ("delays: a contact ends a delay", "counts = np.fmin(own, late) < FREE if self.found >= 0 else", "counts ="),
    ],
    ("filters/plausibility/steps.py", "test/filters/plausibility/test_steps.py"): [
        ("steps: no contact at the tool", "np.zeros_like(tool), tool,", "np.zeros_like(tool),"),
        ("steps: no contact on a link", ", *(link * on_link for on_link in felt)]", "]"),
        (
            "steps: any contact explains a step",
            "return max(_log_density(change",
            "return 1e3 + max(_log_density(change",
        ),
        ("steps: gravity keeps its direction", "if np.linalg.norm(turned) < GRAVITY_TURN:", "if True:"),
    ],
    ("filters/consistency.py", "test/filters/test_consistency.py"): [
        ("consistency: no force is missed", "        if evidence > self._largest:\n", "        if False:\n"),
        ("consistency: own contacts are a push", "s.dt * (drift + s.torque)", "s.dt * drift"),
        ("consistency: friction is certain", "self._observer.friction.variance(), out=", "0.0, out="),
        (
            "consistency: a moving arm starts with a push",
            "state[integral] = state[missed] / ",
            "state[integral] = 0.0 / ",
        ),
        (
            "consistency: a touch is uncertain",
            "share * (variance - self._variance)",
            "1.0 * (variance - self._variance)",
        ),
    ],
    ("filters/wrist_sensor/parity.py", "test/filters/wrist_sensor/test_force.py"): [
        ("parity: forces never contradict each other", "* _GATE * self.std:", "* np.inf:"),
        ("parity: the estimate never drifts", "CONTACT_ERROR**2) + walked", "CONTACT_ERROR**2)"),
    ],
    ("filters/wrist_sensor/force.py", "test/filters/wrist_sensor/test_force.py"): [
        ("wrist: the sensorless force never drifts", "math.sqrt(self._filter.walked)", "0.0"),
        ("wrist: a hold follows a sensor at fault", "self._parity.residual if self._faulty else 0.0", "0.0"),
        ("wrist: a suspected jump is believed", "without if without @ without > force @ force else force", "force"),
    ],
    ("ros/sensor_offset.py", "test/ros/test_sensor_offset.py"): [
        ("sensor offset: nobody is told", "                self._tell()\n", "                pass\n"),
        ("sensor offset: a touched arm is free", "if self._wrist.learnt:", "if True:"),
        ("sensor offset: any estimate tells it", "abs(read_at - t) > APART", "False"),
    ],
    ("drivers/rtde.py", "test/drivers/test_rtde.py -k admittance"): [
        ("rtde: the admittance follows the raw sensor", "force - rotation @ self.force_offset", "1.0 * force")
    ],
    ("filters/stream.py", "test/filters/test_zero.py"): [
        (
            "zero: doubtful torque is an offset",
            "        if self.monitor.problem:\n            self.zero",
            "        if False:\n            self.zero",
        )
    ],
    ("filters/zero.py", "test/filters/test_zero.py"): [
        ("zero: a moving arm is zeroed", "if abs(dq[fastest]) > MAX_SPEED:", "if False:"),
        ("zero: the offset is added", "tau -= self.offset", "tau += self.offset"),
        ("zero: gravity is zeroed too", "residuals.append(tau - self._arm.gravity(q))", "residuals.append(1.0 * tau)"),
    ],
    ("dynamics/momentum.py", "test/filters/test_momentum.py"): [
        (
            "momentum: the residual is not fed back",
            "return residual, integral + dt * residual",
            "return residual, integral",
        )
    ],
    ("filters/momentum.py", "test/filters/test_momentum.py"): [
        ("momentum: no drift term", "integral += s.dt * (terms.drift + s.tau)", "integral += s.dt * s.tau"),
        ("momentum: a reset keeps the residual", 'self._state["w"][:] = 0.0', "pass"),
        ("momentum: the force stays in base axes", '"force_tcp": rotation.T @ wrench[:3]', '"force_tcp": wrench[:3]'),
    ],
    ("filters/imm/mode_chain.py", "test/filters/imm/test_mode_chain.py"): [
        (
            "modes: often steady pushes have negative probability",
            "np.minimum(self.rates[known, steady] * dt, chain[known, steady])",
            "self.rates[known, steady] * dt",
        ),
        ("mode: a contact without a force is named", " and shown():", ":"),
    ],
    ("filters/imm/measurement.py", "test/filters/imm/test_measurement.py"): [
        (
            "contact: torque shows the slope",
            "by(geometry, contact.force)",
            "by(geometry, contact.normal * contact.normal_force)",
        ),
        (
            "contact: torque of a press that stands shows its point",
            "shown[point] = ca.fmax(way_share(s, way, s.depth[i]), s.point_from_torque[i])",
            "shown[point] = 1",
        ),
        ("contact: a load that is held bends joints", "ca.mmax(s.closed * stiffness_shown)", "ca.mmax(s.closed)"),
    ],
    ("filters/imm/output.py", "test/filters/imm/test_output.py"): [
        ("output: a surface is exactly its law", "size = stiffness * depth_error", "size = 0 * depth_error"),
        ("output: the arm does not give way", "(1 + stiffness * compliance)", "1"),
    ],
    ("filters/imm/prediction.py", "test/filters/imm/test_measurement.py"): [
        (
            "contact: a stiffness changes while the arm stands",
            "noise[stiffness] *= way_share(s, s.normal_way[i], x[depth])",
            "pass",
        ),
        ("contact: noise shows the geometry", "_carried(s.x, steady), s.x", "_carried(s.x, contacts), s.x"),
    ],
    ("filters/imm/preintegration.py", "test/filters/imm/test_preintegration.py"): [
        ("contact: axes follow noise", "width = s.position_deadband * turn_noise", "width = 0 * turn_noise"),
        ("contact: a tremble is a way", "steadily = ca.fmin(s.duration / _TREMBLE_TIME, 1) * (", "steadily = 1.0 * ("),
    ],
    ("control/mpc/controller.py", "test/control/test_mpc_controller.py -k wrongly"): [
        (
            "mpc: friction on a wrong normal is pressure",
            'self.problem.set("unmodelled_force", force)',
            'self.problem.set("unmodelled_force", 0 * force)',
        )
    ],
    ("filters/imm/free_starts.py", "test/filters/imm/test_unknown.py -k does_not_stay"): [
        ("free space: made anew after a push", "if felt and self._keeps(j, source):", "if False:")
    ],
    ("filters/imm/imm_step.py", "test/filters/imm/test_push_jump.py"): [
        ("push: a jump opens nothing", "if self._jump.follow(", "if False and self._jump.follow("),
        ("push: what a gear has lost stays lost", "if not self._layout.link_side:", "if False:"),
    ],
    ("filters/imm/push_course.py", "test/filters/imm/test_push_jump.py"): [
        ("push: outliers to both sides are a jump", "beyond * self._count > 0", "beyond**2 * self._count**2 > 0")
    ],
    ("filters/imm/touch_test.py", "test/filters/imm/test_touch_test.py"): [
        (
            "touch: friction that changed meanwhile is a force",
            "whitening(p[self._torque] + np.diag(drift))",
            "whitening(p[self._torque])",
        ),
        (
            "touch: friction has no bound in free space",
            "return bool((beyond > self._most * np.sqrt(p[self._friction])).any())",
            "return False",
        ),
    ],
    ("filters/imm/growing_push.py", "test/filters/imm/test_growing_push.py"): [
        ("growing push: from one state", "return furthest if self._times >= _TIMES", "return furthest if self._times")
    ],
    ("filters/imm/absorbed_push.py", "test/filters/imm/test_absorbed_push.py"): [
        ("absorbed push: never told", "else furthest", "else None"),
        ("absorbed push: the end of one is another", "@ then < RETURNED", "@ then < -np.inf"),
        ("absorbed push: friction changes at rest", "np.expm1(-moved[:, None]", "np.expm1(-passed[:, None]"),
        ("absorbed push: sudden, too", "long = passed >= _LEAST_TIME", "long = passed >= 0.0"),
        ("absorbed push: friction hardly changes by itself", "- self._spread *", "- 0.1 * self._spread *"),
    ],
    ("filters/imm/free_space_history.py", "test/filters/imm/test_growing_push.py"): [
        ("free space: starts from unlearnt friction", "_LEARNT**2 * p[self._coulomb]", "np.inf * p[self._coulomb]"),
        ("free space: a push named for a moment ends the stay", "if self._pushed >= _NAMED:", "if self._pushed:"),
        ("free space: shows what fades as it begins", "if self._stay > 1 or self._traces:", "if True:"),
        ("free space: the end of a push is a growing one", "if not self._growing.returns(", "if True or ("),
        ("free space: a push hides it from the next contact", "if self._since >= _KEPT or", "if self._pushed >= 5 or"),
        ("free space: a push since the start is free space", "if undecided:", "if False:"),
    ],
    ("filters/imm/free_space_history.py", "test/filters/imm/test_absorbed_push.py -k rest"): [
        ("free space: a touch is looked at late", "_BEFORE_TOUCH = 20, 3", "_BEFORE_TOUCH = 20, 20")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_growing_push.py -k stays_free"): [
        ("modes: no free space before a gap is known", "step.history.recall(past, unseen)", "pass")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_absorbed_push.py -k rest"): [
        ("modes: friction changes at rest", "history.advance(duration, moves)", "history.advance(duration, True)")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_start_push.py -k unlikely"): [
        (
            "modes: unlikely free space is named without a word",
            "return self._named.undecided_for > _UNDECIDED",
            "return False",
        )
    ],
    ("filters/imm/mismatch.py", "test/filters/imm/test_push_jump.py"): [
        ("mismatch: a channel that contradicts is not told", "if beyond else", "if False else")
    ],
    ("filters/imm/mismatch.py", "test/filters/imm/test_start_push.py"): [
        ("start: a payload may be a push without a word", "else self._not_free", 'else ""'),
        ("start: a lifted load is free space, unsaid", "self._lifted = self._may_be_weight", "self._may_be_weight"),
        ("start: whatever ends may be a lifted load", "return square < chi_square_quantile(2, _ACROSS)", "return True"),
        ("start: what is lifted has gone", "0.0, _DECIDED, _ENDED", "0.0, _SHOWN_FREE, _NEVER_FREE"),
        ("start: a doubt about free space ends with it", "0.0, _DECIDED, _DOUBTED", "0.0, 0.0, _DOUBTED"),
        ("start: free space does not show the payload", "self.free_time += duration", "pass"),
        ("start: a moment of free space ends a doubt", "self._least_free = _DECIDED", "pass"),
        ("start: what is lifted for long has gone", "elif moves or", "elif True or"),
        ("start: a push that began in a gap is a payload", "if anew:", "if True:"),
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_start_push.py"): [
        ("start: a push that free space hid is no payload", "and not undecided", "and True")
    ],
    ("filters/imm/innovation.py", "test/filters/imm/test_innovation.py"): [
        (
            "innovations: who asks delays the means",
            "        counted, blocks =",
            "        self._count()\n        counted, blocks =",
        )
    ],
    ("filters/imm/free_starts.py", "test/filters/imm/test_start_push.py -k for_long"): [
        ("free space: kept for as long as a push", "_KEPT, _TRIAL = 20, 5", "_KEPT, _TRIAL = 10**9, 5")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_payload.py -k gaps"): [
        ("payload: two starts in a row forget it", "or not self._used", "or not self._used or self._first")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_payload.py -k side"): [
        ("payload: an unknown contact is no table", "Separation(pressed, friction", "Separation(touched, friction")
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k side"): [
        (
            "payload: a push to the side is one",
            "return pushed.log_density(felt.torque) > loaded.log_density(felt.torque)",
            "return False",
        ),
        ("payload: a push beside it is one, too", "new = self.found is None and", "new ="),
        ("payload: a start is above every table", "self._height = 0.0, math.inf", "self._height = 0.0, 0.0"),
    ],
    ("ros/equilibrium_guard.py", "test/ros/test_equilibrium_guard.py"): [
        ("guard: it does not act", "        self._send(", "        print("),
        ("guard: it acts beside a driver that lives", "silent < self.silence", "silent < 0.1"),
        ("guard: a driver that has released is dead", "if self._is_away(pose) else None", ""),
        ("guard: an old sample shows the arm", " > self._max_sample_age", " > 1e9"),
        ("guard: patient limits count for nothing", "limits.stop_after, ", ""),
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k scaled"): [
        (
            "payload: nothing shows that it is no scale",
            "if self.carried and payload and not self.is_no_scale",
            "if False",
        ),
        ("payload: any load is no scale", "> -math.log(self._settings.significance)", "> -1e9"),
    ],
    ("filters/plausibility/torque_readings.py", "test/filters/plausibility/test_torque_readings.py -k observer"): [
        ("signals: a known payload explains nothing", 'inputs["load"][:] = self.load', 'inputs["load"][:] = 0.0')
    ],
    ("filters/stream.py", "test/filters/imm/test_payload.py -k shown"): [
        ("stream: the monitor does not hear of a payload", '"known_load", self', '"no_load", self')
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k part"): [
        (
            "payload: a part put down is carried on",
            "(_PAYLOAD, square) < self._settings.significance",
            "(_PAYLOAD, square) < 0",
        )
    ],
    ("filters/stream.py", "test/filters/imm/test_payload.py -k zeroing"): [
        ("zero: the weight of a payload is taken off twice", "        if zeroed:\n", "        if False:\n")
    ],
    ("filters/plausibility/kinematics.py", "test/filters/plausibility/test_monitor.py -k smoothly"): [
        ("signals: a torque that swings is noise", 'ca.fmin(state["rough"], state["bent"])', 'state["rough"]')
    ],
    ("ros/command_gate.py", "test/ros/test_command_gate.py -k beyond_the_limits"): [
        ("gate: a plan beyond the limits is not told", "last - begun <= _LONG", "True")
    ],
    ("control/standstill.py", "test/control/test_not_executed.py"): [
        (
            "hold: a tool that was turned is turned back",
            "return _beyond(pin.log3(self.rotation.T @ rotation)",
            "return 0.0 * _beyond(pin.log3(self.rotation.T @ rotation)",
        )
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k tool"): [
        ("payload: a missing tool is none", "gaussian_survival(abs(mass) / std)", "gaussian_survival(mass / std)"),
        ("payload: more than the named tool is missing", " or possible <= self._settings.significance", ""),
        ("payload: a tool of no mass is missing", "(-self._named - mass)", "(-2.0 * self._named - mass)"),
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k put_down"): [
        ("payload: what ends is not lifted", "self.carried if payload is None else None", "None")
    ],
    ("filters/imm/payload.py", "test/filters/imm/test_payload.py -k never_moved"): [
        (
            "payload: what was there at the start never goes",
            "self._at_start if self._needs_mass()",
            "self._at_start if True",
        ),
        ("payload: a push beside it ends the words", "self._at_start if self._needs_mass()", "self._at_start if False"),
    ],
    ("filters/imm/payload_change.py", "test/filters/imm/test_payload_change.py"): [
        ("payload: a force that grows past it ends it", "return trend <= self._largest", "return True"),
        ("payload: a torque across it ends it", " or beside > self._largest_beside", ""),
        (
            "payload: a table that carries it ends it",
            "return change > self._uncertainty * weight or self._height > before - _HEIGHT_NOISE",
            "return True",
        ),
    ],
    ("filters/imm/start_decision.py", "test/filters/imm/test_start_decision.py"): [
        ("start: quiet noise gives a contact up", "contact <= free else 1.0", "contact < -free else 1.0"),
        ("start: an improbable contact stays", "_NEARLY_CERTAIN = 0.9", "_NEARLY_CERTAIN = 1.1"),
        ("start: rest tells contacts apart", "held = self._contact_share if rests else None", "held = None"),
    ],
    ("filters/imm/start_push.py", "test/filters/imm/test_start_push.py"): [
        (
            "start push: a release is a window of before",
            "if self._count >= _LEAST and misfit > self._largest:",
            "if False:",
        ),
        ("start push: any push that begins may be an end", "likely = fits and ratio > self._certain", "likely = fits"),
        ("start push: one keeps its direction", "+= np.diag(time", "+= np.diag(0.0 * time"),
        ("start push: one that turns follows its end", "unneeded = self._pushes and", "unneeded = False and"),
        ("start push: none ends", "self._ended >= _ENDED or", "self._ended < 0 or"),
        ("start push: nothing is undecided", "self.words = _WORDS.format(size) if", 'self.words = "" if'),
        (
            "start push: every push is at the tool",
            "self._push = self._at_tool if at_tool else self._anywhere",
            "self._push = self._at_tool",
        ),
    ],
    ("filters/imm/kept_friction.py", "test/filters/imm/test_kept_friction.py"): [
        ("gap: rest has no friction", "unsettled**2 * square", "0.0 * square")
    ],
    ("filters/imm/state.py", "test/filters/imm/test_kept_friction.py"): [
        ("gap: friction stays as certain", " + np.diag(self.noise)", "")
    ],
    ("filters/imm/observer.py", "test/filters/imm/test_kept_friction.py"): [
        ("gap: friction is forgotten", "            self.filters.keep(kept)\n", "            pass\n"),
        ("gap: what pushed before is forgotten", "seen=False, last=k)", "seen=False)"),
    ],
    ("fit/tuning_doubts.py", "test/fit/test_tuning.py"): [
        ("tune: noise that is worse is written", "if loss[h] <= _LOSS:", "if True:"),
        ("tune: colour is taken for noise", "if abs(r[j]) <= _COLOUR:", "if True:"),
        ("tune: a noise that does not show is told as found", "if less and more:", "if True:"),
    ],
    ("commands/numbers.py", "test/commands/test_numbers.py"): [
        ("numbers: infinity passes", "if math.isfinite(value) and inside:", "if inside:"),
        ("numbers: a bound belongs to the range", "value > above", "value >= above"),
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
        ("safety: no turn rate", "shorter = clip_norm(turn, most)", "shorter = turn"),
        ("safety: no limit of torque", "near = clip_norm(ahead, self._most_turn)", "near = ahead"),
        ("deadman: a clock that ran back is trusted", "if age < 0 or age >", "if age >"),
    ],
    ("control/force_balance.py", "test/control/test_force_balance.py"): [
        ("balance: any push is trusted", "return min(self.extra, self._unexplained", "return max(self.extra, 0.0")
    ],
    ("control/ringing.py", "test/control/test_ringing.py"): [
        ("ringing: never noticed", "if len(self._turned) == _SWINGS and", "if False and"),
        ("ringing: however slow", "t - self._turned[0] <= _WINDOW", "True"),
        ("ringing: noise rings", "self.size = max(size, _LEAST)", "self.size = size"),
        ("ringing: an approach is a swing", "if self._rises and t", "if t"),
        ("ringing: as a tool arrives", "self._rises and t - self._begun > _ARRIVAL", "self._rises"),
    ],
    ("control/mpc/apparent_stiffness.py", "test/control/test_apparent_stiffness.py"): [
        ("apparent stiffness: bounds nothing", "if self._shown is None:", "if True:"),
        ("apparent stiffness: noise shows one", "self._ff > self._excitation**2", "True"),
        ("apparent stiffness: a moving surface shows one", "self._xf < 0.0 and self._xf**2", "1.0 or self._xf**2"),
    ],
    ("control/deadband.py", "test/control/test_deadband.py"): [
        ("dead band: it never ends", "abs(error) <= width:", "True:"),
        ("dead band: it rests wherever it is entered", "if not abs(self._error) <= _REACHED * width:", "if False:"),
        ("dead band: it rests where it last was", "self._rest = self._sum / self._ticks", "self._rest = equilibrium"),
    ],
    ("control/supervision.py", "test/control/test_not_executed.py"): [
        ("supervision: it pushes an arm that is stopped", "if not problem and not observation.executed:", "if False:")
    ],
    ("control/supervision.py", "test/control/test_deadband.py"): [
        ("dead band: of a sensed force, too", "or observation.sensed or", "or"),
        ("dead band: wider than the push", "min(settings.force_deadband,", "max(settings.force_deadband,"),
        ("dead band: never", "if now.rest is not None:", "if False:"),
    ],
    ("control/mpc/task_checks.py", "test/control/test_task_checks.py"): [
        ("task: a path of any length", "if way > limits.max_travel:", "if False:"),
        ("task: a path of any speed", "if speed > limits.max_speed:", "if False:"),
        ("task: forces without a weight", "> _ACROSS * np.linalg.norm(wanted)", "> 1e9"),
        ("task: modes of any name", "if not fits:", "if False:"),
    ],
    ("control/observation_check.py", "test/control/test_mpc_controller.py"): [
        ("observation: any number of joints", "if (joints, joints) != (found :=", "if False and (found :=")
    ],
    ("control/sequence.py", "test/control/test_sequence.py"): [
        ("step: the clock arrives", "and missing <= self.sequence.arrive_distance:", ":"),
        ("step: the words of an estimate end it", "if command.lost:", 'if "contact lost: " in command.reason:'),
        ("step: a latched hold goes on", "if command.latched else", "if False else"),
        ("step: any force is felt", "if felt <= max(most, _TAKEN_OVER * self._least):", "if True:"),
        ("step: its path turns back", "path_back=False", "path_back=True"),
        (
            "step: a failed one goes on pushing",
            "relaxed = command.position if self",
            "relaxed = command.position if True or self",
        ),
        ("step: an estimate that does not count ends it", "if self._unusable(observation):  #", "if False:  #"),
    ],
    ("control/supervision.py", "test/control/test_mpc_controller.py"): [
        ("outage: a dragged tool is led back", "if moved > limits.resume_distance or turned", "if turned"),
        (
            "outage: a hold moves on invalid estimates",
            "if not problem:\n                self._follow",
            "if True:\n                self._follow",
        ),
        (
            "standstill: the spring grows",
            "self._position = clip_equilibrium(self._position, x, x, self._stiffness, self._limit)",
            "pass",
        ),
        (
            "activation: any contact will do",
            "if self.adapt and (problem := foreign_names(",
            "if False and (problem := foreign_names(",
        ),
    ],
    ("control/supervision.py", "test/control/test_second_force.py"): [
        ("push: one force alone is believed", "min(most - now.doubt, force", "min(most, force")
    ],
    ("control/controller.py", "test/control/test_second_force.py"): [
        ("push: an estimate that drifted is believed", "drift / max(", "0 / max(")
    ],
    ("filters/wrist_sensor/zeroed.py", "test/filters/wrist_sensor/test_zeroed.py"): [
        ("zeroed: no jump is a fault", "self.fault, self._before = jump, before", "pass"),
        ("zeroed: every jump is one of the sensor", "self._jump if _lacks(", "self._jump if True or _lacks("),
    ],
    ("drivers/clock.py", "test/drivers/test_clock.py"): [
        (
            "clock: the smallest delay does not follow the drift",
            "low = min(low, offset + round(_MAX_DRIFT * max(controller_ns - stamp, 0)))",
            "low = min(low, offset)",
        ),
        ("clock: a burst is lateness", "if monotonic_ns >= self._until:", "if True:"),
        (
            "clock: a restart forgets the smallest delay",
            "        self._late: deque",
            "        self._smallest = None\n        self._late: deque",
        ),
    ],
    ("drivers/rtde.py", "test/drivers/test_rtde_refusals.py"): [
        ("rtde: late samples are commanded from", "if silence + state.delay > limit:", "if False:"),
        ("rtde: lateness lasts", "or lateness_problem(", 'or "" and lateness_problem('),
        ("rtde: any TCP is commanded", "or tcp_problem(", 'or "" and tcp_problem('),
        ("rtde: a new client takes control again", "self._link.restart_without_control()", "pass"),
        ("rtde: a lost connection is forgotten", "self._connected and self.settings.control", "False"),
    ],
    ("drivers/rtde_client.py", "test/drivers/test_rtde_refusals.py"): [
        ("rtde: the library connects control again", "    os._exit(_end(out,", "    (_end(out,")
    ],
    ("drivers/rtde_state.py", "test/drivers/test_rtde_refusals.py"): [
        ("rtde: another program is its own", "        if self._ended:\n", "        if False:\n"),
        ("rtde: a turned TCP is the model's", "and angle <= MAX_TCP_ANGLE", "and True"),
        ("rtde: the TCP is told in base_link", "there = CONTROLLER_BASE @ told[:3]", "there = told[:3]"),
    ],
    ("ros/command_gate.py", "test/ros/test_command_gate.py"): [
        (
            "gate: one late sample ends a motion",
            "except StaleSampleError as error:",
            "except ZeroDivisionError as error:",
        ),
        (
            "gate: activates an arm that executes nothing",
            'if why := getattr(self._backend, "state_problem", str)():',
            'if why := "":',
        ),
        ("gate: a protective stop leaves it active", "if why := self._stop_reason():", 'if why := "":'),
        ("gate: any quaternion passes", "if not np.isfinite(norm) or abs(norm - 1.0) > 1e-3:", "if False:"),
        (
            "gate: a dead estimator does not stop it",
            "if state is SafetyState.STOP and self._sample is not None:",
            "if False:",
        ),
        ("gate: bad estimates count", "        if problem:\n", "        if False:\n"),
        ("gate: a silent planner keeps its push", "now - self._commanded <= limit:", "now - self._commanded <= 1e9:"),
        ("gate: commands of the past pass", "if stamp_ns and not abs(age) <= limits.stop_after:", "if False:"),
        ("gate: what waited is fresh", "self._commanded = now - arrival.waited", "self._commanded = now"),
        ("gate: nonsense is a command", 'if "not finite" not in command.limited:', "if True:"),
        (
            "gate: two planners alternate",
            "if not self.planner.follows(arrival.number, now - arrival.waited):",
            "if False:",
        ),
    ],
    ("ros/staleness.py", "test/ros/test_staleness.py"): [
        ("rule: any tool counts", 'message.tcp_frame not in ("", tcp)', "False"),
        (
            "rule: estimates of the future count",
            "if not problem and not abs(age) <= limit:",
            "if not problem and not age <= limit:",
        ),
        ("rule: any robot counts", "or tuple(message.joint_names) not in self._joints", ""),
        ("rule: invalid estimates count", "if not message.valid:", "if False:"),
    ],
    ("ros/convert.py", "test/ros/test_convert.py"): [
        (
            "convert: stamps lose their nanoseconds",
            "int(stamp.sec * 1_000_000_000 + stamp.nanosec)",
            "int(stamp.sec * 1_000_000_000)",
        )
    ],
    ("ros/serialized.py", "test/ros/test_joint_states.py"): [
        (
            "joint states: joints keep the message's order",
            "rows.append(np.array(data)[self._columns])",
            "rows.append(np.array(data))",
        ),
        ("joint states: lengths are not compared", "if len(data) != count:", "if False:"),
        ("joint states: another layout is read as the first", "& self._constant != self._expected", "& 0 != 0"),
    ],
    ("ros/arrival.py", "test/ros/test_arrival.py"): [
        ("arrival: two that send the same numbers alternate", "number == self._number or", ""),
        ("arrival: one that was passed over is followed", "self._passed_over < number < self._number", "False"),
    ],
    ("dynamics/observability.py", "test/dynamics/test_observability.py"): [
        ("observability: a posture is one step of a second", "_STEP = 2e-3", "_STEP = 1.0")
    ],
    ("drivers/joint_torque.py", "test/drivers/test_joint_torque.py"): [
        ("joint torque: positions may jump", "if not beyond[j] > 0:", "if True:"),
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
        ("recovery: a journal is forgotten", "for part in (file, *journals(file)):", "for part in (file,):"),
    ],
    ("io/topic_buffer.py", "test/io/test_bag.py"): [
        ("hostile: two arms become one", "            if prefixes[0] != self._prefix:", "            if False:")
    ],
    ("io/bag.py", "test/io/test_bag.py"): [("hostile: a silent topic refuses the bag", "if c.msgcount}", "}")],
    ("io/stamped_rows.py", "test/io/test_blocks.py"): [
        ("hostile: a pause is interpolated", "found[unknown] = np.nan", "pass")
    ],
    ("io/growing_bag.py", "test/io/test_growing_bag.py"): [
        (
            "hostile: a full disk is written on",
            "            return\n        with self._failures():\n            if topic",
            "            pass\n        with self._failures():\n            if topic",
        )
    ],
    ("viz/reference.py", "test/viz/test_summary.py"): [
        ("hostile: NaN is 0 N", "np.interp(rows, rows[known], column[known])", "np.nan_to_num(column)")
    ],
    ("ros/executor.py", "test/ros/test_executor.py"): [
        ("hostile: what close() finds is no exit code", "return code or next(", "return code or 0 * next("),
        (
            "hostile: unreadable parameters are a success",
            "    except RuntimeError as error:  # an RCLError",
            "    except OSError as error:",
        ),
    ],
    ("viz/server.py", "test/viz/test_server.py"): [
        ("page: a client that never reads stays", '"timeout": patience}', '"timeout": None}'),
        ("page: old frames are kept for a slow client", "socket.SO_SNDBUF, _BACKLOG)", "socket.SO_SNDBUF, 1 << 22)"),
        ("page: an old estimate is new", "else arrival, text", "else time.monotonic(), text"),
        ("page: a foreign host is served", "if host not in _HOSTS:", "if False:"),
    ],
    ("viz/page/player.js", "test/viz/test_live_page.py"): [
        ("page: a paused one follows", "held = on ? null :", "held = true ? null :"),
        ("page: a silent observer is not told", "return seconds > SILENCE ? seconds : null;", "return null;"),
    ],
    ("viz/thinning.py", "test/viz/test_thinning.py"): [
        ("page: maxima are lost", "(np.argmin, np.argmax)", "(np.argmin, np.argmin)"),
        ("page: changes are lost", "chosen |= {*changes.tolist(), *", "chosen |= {*"),
        ("page: changes are not bounded", "if len(changes) > MAX_CHANGES:", "if False:"),
    ],
    ("identify/batch/evidence.py", "test/identify/batch/test_evidence.py test/identify/batch/test_own_scene.py"): [
        ("identify: gaps are not counted", "1.0 - float(np.mean(each.worth[inside] > 0))", "0.0"),
        ("identify: no fault is named", "for _, finding in flagged[:1]]", "for _, finding in flagged[:0]]"),
        ("identify: zeros are tested one by one", "eigh(free * np", "eigh(np.eye(len(part)) * free * np"),
        ("identify: nothing is unchecked", "if fault.kind in _RESTING and np.any(rests):", "if False:"),
        ("identify: everything is unchecked", "> _RESTS * std[:, None]", "> -1.0"),
        ("identify: an absorbed scale is known", "fault.unseen | (fault.unmeasured", "(fault.unmeasured"),
        ("identify: a wide prior checks a scale", "(fault.unmeasured & (_SIGMAS * size > least))", "False"),
        ("identify: no prior checks a scale", " & (_SIGMAS * size > least))", ")"),
        ("identify: an absorbed scale moves little", "np.maximum(least / size[absorbed], 1.0)", "1.0"),
        ("identify: misfit widens no interval", "worst = chi_square, correlation", "pass"),
        ("identify: a bound is an answer", "if note == AT_BOUND or", "if"),
    ],
    ("identify/batch/held.py", "test/identify/batch/test_own_scene.py"): [
        ("identify: frozen samples pass", "if chi_square > worst:", "if False:"),
        ("identify: frozen torques pass", "in problem.grid_channels:", "in problem.grid_channels[:1]:"),
        ("identify: a rest is frozen", "worst, _FROZEN, message", "float(bool(where.end)), 0.0, message"),
    ],
    ("identify/verdict.py", "test/identify/test_verdict.py"): [
        (
            "verdict: NaN passes",
            "return not self.statistic <= self.threshold",
            "return self.statistic > self.threshold",
        ),
        (
            "verdict: nothing is fatal",
            "failed = bool(failures) or any(f.fatal for f in flagged)",
            "failed = bool(failures)",
        ),
        (
            "verdict: any of several optima is good",
            "distance, 3.0, message, fatal=True",
            "distance, 3e3, message, fatal=True",
        ),
    ],
    ("identify/probing/offline.py", "test/adversary/test_probing_verdict.py"): [
        ("probing: gaps pass", "float(intervals[at]), max(_GAP", "0.0, max(_GAP"),
        ("probing: any guess passes", 'Finding("guess", statistic', 'Finding("guess", 0.0'),
        ("probing: a disturbance is not named", "float(likeliest is not plain)", "0.0"),
        ("probing: a bound is an answer", "return [problem] if problem else []", "return []"),
    ],
    ("identify/probing/signals.py", "test/adversary/test_probing_verdict.py test/identify/probing/test_offline.py"): [
        ("probing: a twist of any scale passes", "abs(scale - 1.0), max(", "0.0, max("),
        ("probing: a twist in degrees passes", "if left - noise > _LEFT * motion:", "if False:"),
        ("probing: frozen signals pass", "float(end - begin + 1)", "0.0"),
        ("probing: a dead sensor is a slow one", "if len(first) >= _READINGS else", "if len(first) else"),
        ("probing: a pose at rest is frozen", "_equal(data.pose) & moving", "_equal(data.pose)"),
    ],
}
