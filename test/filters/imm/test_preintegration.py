"""What a block of samples measures, and how sure of it motion leaves the filters."""

import itertools

import numpy as np
import pytest

from contact_estimation.codegen import compile_function
from contact_estimation.filters.imm.preintegration import Preintegration, build_block, build_sample
from contact_estimation.filters.imm.settings import run_time_inputs
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping
from contact_estimation.simulation.scenarios.settings import ScenarioSettings
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation

DT, SAMPLES = 0.002, 5
START_POSE = np.array([-0.9949, -1.0251, 2.2963, -2.8673, -1.5511, 0.5630])


@pytest.fixture(scope="module")
def blocks(arm, actuators, two_contacts):
    """Runs a motion q(t), dq(t), tau(q, dq) for so many blocks; the outputs of each."""
    layout = StateLayout(two_contacts, actuators, 6)
    sample, block = compile_function(build_sample(arm, layout)), compile_function(build_block(arm, layout))

    def run(position, velocity, torque, count, **changed):
        signals = run_time_inputs(two_contacts, actuators) | layout.inputs
        changed = {"model_error": 0.1, "velocity_delay": 0.0, "velocity_noise": 0.0} | changed
        changed = {"coulomb_prior": 0.0, "usual_noise": actuators.deadband**2} | changed
        for name, value in changed.items():
            signals[name][:] = value
        samples = Preintegration(arm, layout, sample, block, signals, 1e4)
        samples.reset(position(0.0))
        samples.start_moving(position(0.0), velocity(0.0), 1.0)
        samples.set_interval(DT)
        rows, t = [], 0.0
        for _ in range(count):
            for _ in range(SAMPLES):
                t += DT
                q, dq = position(t), velocity(t)
                signals["q"][:], signals["dq"][:], signals["tau"][:] = q, dq, torque(t, q, dq)
                samples.take()
            samples.finish(SAMPLES * DT, SAMPLES)
            rows.append({name: value.copy() for name, value in block.outputs.items()})
        return layout, rows

    return run


def swing(size, frequency=1.0):
    """Every joint swings by ``size`` [rad], ``frequency`` [Hz] times a second, beginning at rest."""
    rate = 2.0 * np.pi * frequency
    return (
        lambda t: START_POSE + size * (1.0 - np.cos(rate * t)),
        lambda t: np.full(6, size * rate * np.sin(rate * t)),
    )


@pytest.mark.parametrize("axis", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
def test_a_tool_turns_against_a_normal_but_not_about_it(arm, blocks, two_contacts, axis):
    """Nor is a rotation about the TCP a way of it."""
    rate = np.linalg.solve(arm.tcp_jacobian(START_POSE), [0.0, 0.0, 0.0, *(0.2 * np.array(axis))])
    _, rows = blocks(lambda t: START_POSE + rate * t, lambda t: rate, lambda t, q, dq: np.zeros(6), 10)
    normals = np.array([contact.normal for contact in two_contacts.contacts])
    across = np.linalg.norm(np.cross(normals / np.linalg.norm(normals, axis=1)[:, None], axis), axis=1)
    np.testing.assert_allclose(rows[-1]["turn"], 0.02 * across, atol=2e-3)
    assert across.max() > 0.9 and across.min() < 0.15
    assert rows[-1]["normal_way"].max() < 1e-4


def test_a_tremble_is_less_of_a_way_than_slow_motion(arm, blocks):
    """Both move the tool up and down by as much in a second."""

    def way(frequency):
        _, rows = blocks(*swing(4e-3 / frequency, frequency), lambda t, q, dq: np.zeros(6), 100)
        return rows[-1]["normal_way"]

    assert (way(8.0) < 0.5 * way(1.0)).all()
    assert (way(1.0) > 0.9 * way(0.5)).all()


def test_noise_of_the_motors_velocity_does_not_relax_their_friction(arm, actuators, two_contacts):
    """Presliding states keep their value over 5 s of standstill, and still turn with 1 mrad/s beside the noise."""
    layout = StateLayout(two_contacts, actuators, 6, motor_side=True)
    sample, block = compile_function(build_sample(arm, layout)), compile_function(build_block(arm, layout))
    signals = run_time_inputs(two_contacts, actuators) | layout.inputs
    samples = Preintegration(arm, layout, sample, block, signals, actuators.position_filter)
    samples.reset(START_POSE)
    samples.set_interval(DT)
    rng = np.random.default_rng(5)

    def move(speed, duration):
        for _ in range(round(duration / DT)):
            signals["q"][:] = START_POSE
            signals["dq"][:] = speed + rng.normal(0, 2e-4, 6)
            samples.take()
        return samples.parts.presliding.copy()

    np.testing.assert_allclose(move(1e-3, 2.0), 1.0, atol=0.01)
    np.testing.assert_allclose(move(0.0, 5.0), 1.0, atol=0.05)
    np.testing.assert_allclose(move(-1e-3, 2.0), -1.0, atol=0.01)


def test_a_sudden_stop_makes_friction_uncertain_a_slow_one_does_not(arm, blocks):
    def stopping(time):
        """Noise of the disturbances, in Coulomb frictions, of joints that stop from 9 mrad/s within ``time`` [s]."""

        def speed(t):
            return 9e-3 * np.clip((0.03 - t) / time + 1.0, 0.0, 1.0)

        def position(t):
            grid = np.linspace(0.0, t, 400)
            return START_POSE + np.trapezoid(speed(grid), grid)

        changed = {"stop_error": 0.5, "coulomb_prior": 1.0, "presliding_length": 1.5e-4}
        changed |= {"friction_error": 0.0, "model_error": 0.0}
        _, rows = blocks(position, lambda t: np.full(6, speed(t)), lambda t, q, dq: arm.gravity(q), 30, **changed)
        return np.sqrt(sum(row["motion_noise"][-6:] for row in rows))

    sudden = stopping(0.001)
    assert (sudden > 0.1).all() and (stopping(0.2) < 0.4 * sudden).all()


def test_a_joint_that_sets_off_from_rest_has_unknown_friction_until_it_slides(arm, blocks):
    """As much as after a sudden stop; once."""
    speed, changed = 5e-3, {"stop_error": 0.5, "coulomb_prior": 1.0, "presliding_length": 1.5e-4}
    changed |= {"friction_error": 0.0, "model_error": 0.0}

    def position(t):
        return START_POSE + speed * max(t - 0.3, 0.0)

    def velocity(t):
        return np.full(6, speed * (t > 0.3))

    _, rows = blocks(position, velocity, lambda t, q, dq: arm.gravity(q), 100, **changed)
    added = np.array([row["motion_noise"][-6:] for row in rows])
    assert (added[:29] < 1e-6).all() and (added[60:] < 1e-6).all()
    np.testing.assert_allclose(added.sum(axis=0), 0.5**2, rtol=0.02)


def test_noise_of_a_velocity_is_in_the_momentum_of_every_joint(arm, blocks):
    still = (lambda t: START_POSE, lambda t: np.zeros(6))
    _, noisy = blocks(*still, lambda t, q, dq: arm.gravity(q), 1, velocity_noise=1e-3)
    _, exact = blocks(*still, lambda t, q, dq: arm.gravity(q), 1)
    added = (noisy[0]["R"] - exact[0]["R"])[-6:]
    expected = 2.0 * (arm.mass(START_POSE) ** 2).sum(axis=1) * (1e-3 / (SAMPLES * DT)) ** 2
    np.testing.assert_allclose(added, expected, rtol=1e-6)


def test_a_motion_at_changing_speed_bends_no_joint(arm, blocks):
    """Rigid joints: q - integral dq stays what it is. Half a sample's way at 0.6 rad/s would be 630 urad, 25 Nm."""
    layout, rows = blocks(*swing(0.1), lambda t, q, dq: arm.gravity(q), 100)
    deflection = np.array([row["y"][: layout.m] for row in rows])
    assert np.ptp(deflection, axis=0).max() < 5e-6


@pytest.mark.parametrize("motor_side", [False, True])
def test_friction_turns_with_the_motor_where_its_velocity_is_measured(arm, actuators, two_contacts, motor_side):
    """A joint that bends by 0.6 mrad under a load while its motor stands, then a motor that turns by as much."""
    layout = StateLayout(two_contacts, actuators, 6, motor_side)
    signals = run_time_inputs(two_contacts, actuators) | layout.inputs
    functions = [compile_function(f) for f in (build_sample(arm, layout), build_block(arm, layout))]
    samples = Preintegration(arm, layout, *functions, signals, 8.0)
    samples.reset(START_POSE)
    samples.set_interval(DT)

    def move(q, dq):
        signals["dq"][:] = dq
        for _ in range(100):
            q = q + 6e-6
            signals["q"][:] = q
            samples.take()
        return q, samples.parts.presliding.copy()

    q, presliding = move(START_POSE, np.zeros(6))
    assert (np.abs(presliding) < 1e-12).all() if motor_side else (presliding > 0.9).all()
    _, presliding = move(q, np.full(6, 6e-6 / DT))
    assert (presliding > 0.9).all()


def test_an_old_velocity_makes_the_deflection_uncertain_by_the_way_since(arm, actuators, blocks):
    position, velocity = swing(0.1)
    _, rows = blocks(position, velocity, lambda t, q, dq: arm.gravity(q), 25, velocity_delay=1e-3)
    _, exact = blocks(position, velocity, lambda t, q, dq: arm.gravity(q), 25)
    added = np.sqrt(rows[-1]["R"][0] - exact[-1]["R"][0])
    assert added == pytest.approx(1e-3 * velocity(0.245)[0], rel=0.02)


def test_standing_still_leaves_everything_as_certain_as_it_was(arm, blocks):
    _, rows = blocks(lambda t: START_POSE, lambda t: np.zeros(6), lambda t, q, dq: arm.gravity(q), 50)
    assert max(np.abs(row["motion_noise"]).max() for row in rows) < 1e-12


def test_slip_direction_follows_the_way_of_the_tool_and_stays_at_standstill(arm, blocks):
    """There and back by 0.2 rad of the base joint, then rest: the way back decides."""
    angle = lambda t: 0.2 * np.sin(np.pi * min(t, 0.9)) * np.eye(6)[0]  # noqa: E731
    _, rows = blocks(lambda t: START_POSE + angle(t), lambda t: np.zeros(6), lambda t, q, dq: np.zeros(6), 120)
    for block, sign in ((40, 1.0), (85, -1.0), (119, -1.0)):
        q = START_POSE + angle(0.01 * (block + 0.5))
        expected = sign * arm.tcp_jacobian(q)[:3, 0]
        found = rows[block]["slip_direction"]
        np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=0.02)


def test_noise_of_the_encoders_is_no_steady_motion_and_a_swing_is(arm, actuators, blocks):
    """The steady pose does not move in noise; it follows a swing behind its deadbands."""
    noise = actuators.deadband * np.random.default_rng(3).standard_normal((1000, 6))
    still = lambda t: START_POSE + noise[round(t / DT)]  # noqa: E731
    _, rows = blocks(still, lambda t: np.zeros(6), lambda t, q, dq: np.zeros(6), 190)
    ways = np.array([row["steady_pose"] - row["steady_before"] for row in rows[40:]])
    raw = np.array([row["tcp_pose"] - row["tcp_before"] for row in rows[40:]])
    assert np.abs(ways).max() == 0.0 and np.abs(raw).max() > 1e-5
    position, velocity = swing(0.1)
    _, rows = blocks(position, velocity, lambda t, q, dq: np.zeros(6), 50)
    for before, row in itertools.pairwise(rows):
        np.testing.assert_array_equal(row["steady_before"], before["steady_pose"])
        np.testing.assert_allclose(row["steady_pose"], row["tcp_pose"], atol=3e-4)
    assert np.abs(rows[-1]["steady_pose"] - rows[0]["steady_pose"]).min() > 1e-3


@pytest.mark.parametrize("amplitude, share", [(5e-4, 1.0), (0.1, 0.0)], ids=["slow", "fast"])
def test_a_contact_holds_the_tool_in_slow_motion(arm, blocks, amplitude, share):
    position, velocity = swing(amplitude)
    _, rows = blocks(position, velocity, lambda t, q, dq: np.zeros(6), 30)
    assert rows[29]["push_share"] == pytest.approx(share, abs=0.01)


def test_motion_and_load_make_it_less_certain(arm, blocks):
    """The variances added are transmission_error^2 times the way, and those of a share of the changes of torque."""
    position, velocity = swing(0.1)
    layout, rows = blocks(position, velocity, lambda t, q, dq: arm.gravity(q), 50)
    added = np.array([row["motion_noise"] for row in rows])
    way = 0.2 - 50 * 2.5e-5  # less the deadband of every block
    np.testing.assert_allclose(added[:, : layout.m].sum(axis=0), 3e-4**2 * way, rtol=0.02)
    _, twice = blocks(position, velocity, lambda t, q, dq: arm.gravity(q), 50, model_error=0.2)
    torque = np.array([row["motion_noise"] for row in twice])[:, layout.m :].sum(axis=0)
    np.testing.assert_allclose(torque, 4.0 * added[:, layout.m :].sum(axis=0), rtol=1e-9)
    inertial = np.abs(arm.mass(START_POSE) @ np.full(6, 0.1 * (2.0 * np.pi) ** 2))[1]  # [Nm] there at once
    assert 0.05 * inertial < np.sqrt(added[:, layout.m + 1].sum()) < 0.2 * inertial


def test_a_torque_noisier_than_configured_is_trusted_less(arm, actuators, blocks):
    rng, usual, noise = (
        np.random.default_rng(0),
        np.square(actuators.torque_noise),
        np.array([9.0, 1.0, 1.0, 1.0, 1.0, 0.8]),
    )
    still = lambda t: START_POSE, lambda t: np.zeros(6)
    layout, rows = blocks(*still, lambda t, q, dq: arm.gravity(q) + noise * rng.standard_normal(6), 600)
    variance = np.array([row["R"][layout.m :] for row in rows])[100:]
    np.testing.assert_allclose(variance[:, [0, 5]].mean(axis=0), noise[[0, 5]] ** 2 / SAMPLES, rtol=0.15)
    np.testing.assert_allclose(variance[:, 1], usual[1])  # quieter than configured: as configured
    # One shock does not make the arm deaf.
    _, rows = blocks(*still, lambda t, q, dq: arm.gravity(q) + (60.0 if abs(t - 0.5) < 0.004 else 0.0), 200)
    shock = [row["R"][layout.m + 1] ** 0.5 for row in rows]
    assert max(shock) < 3.0 * actuators.torque_noise[1]


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_a_fast_arm_touches_nothing(robot):
    """Strokes of 0.1 m in 0.6 s and back, in free air: no contact is named and no force told."""
    still, start = (
        {"duration": 0.3},
        {"ur16e": START_POSE.tolist(), "fr3": [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]},
    )
    settings = {
        "title": "fast",
        "robot": robot,
        "start": start,
        "controller": {"ur16e": "admittance", "fr3": "impedance"},
        "surfaces": [{"name": "table", "stiffness": 25000.0, "offset": [0.0, 0.0, -0.3]}],
        "motion": [
            still,
            {"duration": 0.6, "move": [0.0, 0.0, 0.1]},
            {"duration": 0.8, "move": [0.1, -0.1, 0.1]},
            {"duration": 1.0, "move": [0.0, 0.1, 0.0]},
            {"duration": 0.6},
            still,
        ],
        "admittance": {"max_speed": 0.5},
        "impedance": {"stiffness": [2000.0] * 3, "rotational_stiffness": [200.0] * 3, "max_force": 80.0},
    }
    arm, imperfections = load_arm(robot), load_imperfections(robot)
    simulation = Simulation(from_mapping(ScenarioSettings, settings, "fast"), arm, imperfections, 0)
    stream = open_stream(arm, "contact_imm", imperfections.sensors)
    speed, estimates = 0.0, []
    for sample in simulation.run():
        speed = max(speed, np.abs(sample.dq).max())
        estimates.append(stream.push(sample.stamp_ns, sample.q, sample.dq, sample.tau))
    assert speed > 0.5 and {e.mode for e in estimates} == {"free"}
    assert max(np.linalg.norm(e.force_tcp) for e in estimates) < 1.0


def test_calibrated_torque_scale_and_viscous_friction_are_taken_off(arm, blocks):
    """Planted on a motion at changing speed, by inverse dynamics: nothing of them is left in the measurement."""
    position, velocity = swing(0.1)
    scale, viscous, asymmetry = np.linspace(0.9, 1.1, 6), np.linspace(5.0, 20.0, 6), np.linspace(-1.0, 1.0, 6)

    def torque(t, q, dq):
        ddq = (velocity(t + 1e-6) - velocity(t - 1e-6)) / 2e-6
        rigid = arm.mass(q) @ ddq + arm.coriolis(q, dq) + arm.gravity(q)
        return (rigid + (arm.motor.viscous + viscous) * dq + asymmetry * np.abs(dq)) / scale

    layout, rows = blocks(position, velocity, torque, 50, torque_scale=scale, viscous=viscous, asymmetry=asymmetry)
    left = np.array([row["y"][layout.m :] for row in rows])
    _, rows = blocks(position, velocity, torque, 50)
    plain = np.array([row["y"][layout.m :] for row in rows])
    assert np.abs(left).max() < 0.6 and (np.abs(plain).max(axis=0) > 2.0).all()


@pytest.mark.parametrize(("key", "spread"), [("viscous_std", 2.0), ("asymmetry_std", 2.0), ("presliding_spread", 0.3)])
def test_uncertain_friction_makes_a_moving_block_less_certain(arm, blocks, key, spread):
    position, velocity = swing(0.1)
    motion = (position, velocity, lambda t, q, dq: arm.gravity(q), 50)
    layout, exact = blocks(*motion, coulomb_prior=5.0)
    _, rows = blocks(*motion, coulomb_prior=5.0, **{key: spread})

    def variance(rows):
        return np.sum([row["R"][layout.m :] + row["motion_noise"][layout.m :] for row in rows], axis=0)

    assert (variance(rows) > variance(exact) + 1e-3).all()


def test_friction_changes_in_proportion_to_the_speed(arm, blocks):
    def share(speed, usual):
        _, rows = blocks(
            lambda t: START_POSE + speed * t,
            lambda t: np.full(6, speed),
            lambda t, q, dq: arm.gravity(q),
            3,
            disturbance_speed=usual,
            deadband=0.0,
        )
        return rows[-1]["friction_moves"]

    np.testing.assert_allclose(share(0.05, 0.1), 0.5, rtol=1e-6)
    np.testing.assert_allclose(share(0.2, 0.1), 1.0)
    assert (share(0.0, 0.1) < 1e-6).all()
    np.testing.assert_allclose(share(0.0, 0.0), 1.0)
