"""Imperfections: each does what its setting says, scales, and can be turned off."""

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import Arm, load_arm
from contact_estimation.settings import from_mapping, replace
from contact_estimation.simulation.arm import SimulatedArm
from contact_estimation.simulation.friction import LuGreFriction
from contact_estimation.simulation.sensors import ImperfectionSettings, SensorPipeline
from contact_estimation.simulation.sensors.pipeline import quantise
from contact_estimation.simulation.sensors.settings import derived_imperfections, load_imperfections, scaled
from contact_estimation.simulation.session import Simulation, load_scenario, open_simulation

Q = np.array([-0.9949, -1.0251, 2.2963, -2.8673, -1.5511, 0.5630])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def plant(arm, mapping, seed=0, timestep=1e-3):
    settings = from_mapping(ImperfectionSettings, mapping, "test")
    return SimulatedArm(arm, Q, [], np.zeros((1, 3)), settings, timestep, np.random.default_rng(seed)), settings


def readings(arm, mapping, count=4000):
    simulated, settings = plant(arm, mapping)
    pipeline = SensorPipeline(settings, 6, 0.002, np.random.default_rng(1))
    rows = [pipeline.read(simulated) for _ in range(count)]
    return simulated, {
        name: np.array([getattr(row, name) for row in rows]) for name in ("q", "dq", "tau", "wrench_tcp")
    }


def test_ideal_reads_the_state(arm):
    simulated, got = readings(arm, {}, 3)
    assert np.array_equal(got["q"][0], simulated.q) and np.array_equal(got["tau"][0], simulated.motor_torque)


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
def test_noise_has_the_stated_size_and_scales(arm, scale):
    torque = {"scale": scale, "noise": [0.5] * 6, "coloured_noise": [0.3] * 6, "correlation_time": 0.01}
    _, got = readings(
        arm, {"encoder": {"scale": scale, "noise": 1e-5}, "torque": torque, "wrench": {"scale": scale, "noise": 0.4}}
    )
    assert got["q"].std(axis=0) == pytest.approx(scale * 1e-5, rel=0.05, abs=1e-10)
    assert got["tau"].std(axis=0) == pytest.approx(scale * np.hypot(0.5, 0.3), rel=0.12, abs=1e-10)
    assert got["wrench_tcp"][:, :3].std() == pytest.approx(scale * 0.4, rel=0.05, abs=1e-10)
    colour = got["tau"] - got["tau"].mean(axis=0)
    if scale:
        correlation = np.mean(colour[1:] * colour[:-1]) / np.mean(colour**2)
        assert correlation == pytest.approx(0.09 / 0.34 * np.exp(-0.2), abs=0.05)


def test_quantisation_and_bias(arm):
    simulated, got = readings(
        arm, {"encoder": {"resolution": 1e-4}, "torque": {"resolution": [0.0, 0.5, 1, 1, 1, 1], "bias": [2.0] * 6}}, 2
    )
    assert np.allclose(got["q"][0], np.round(Q / 1e-4) * 1e-4, atol=1e-12)
    expected = simulated.motor_torque + 2.0
    assert got["tau"][0, 0] == expected[0]
    assert got["tau"][0, 1] == pytest.approx(np.round(expected[1] / 0.5) * 0.5)
    assert np.array_equal(quantise(np.array([0.26]), 0.1).round(9), [0.3])


def test_standstill_reads_exactly_zero_velocity(arm):
    _, got = readings(arm, {"velocity": {"noise": 1e-4, "deadband": 1e-3}}, 50)
    assert not got["dq"].any()


def test_friction_slides_at_coulomb_and_springs_before():
    friction = LuGreFriction([8.0, 0.0], [8.0, 0.0], 2e-3, 1.5e-4, [0.0, 0.3])
    for _ in range(2000):
        torque = friction.torque(np.array([0.01, 0.5]), 1e-3)
    assert torque == pytest.approx([8.0, 0.15], rel=1e-3)
    assert friction.torque(np.zeros(2), 1e-3)[0] == pytest.approx(8.0, rel=1e-3)  # it persists at rest
    fresh = LuGreFriction([8.0], [8.0], 2e-3, 1.5e-4, [0.0])
    small = fresh.torque(np.array([1e-3]), 1e-3)[0]
    assert small == pytest.approx(8.0 / 1.5e-4 * 1e-6, rel=0.01)
    assert (fresh.torque(np.array([-1e-3]), 1e-3)) == pytest.approx(0.0, abs=0.01 * small)


@pytest.mark.parametrize("robot", ["ur16e", "fr3", "ur10e"])
def test_derived_friction_of_a_light_last_link_does_not_oscillate(robot):
    """Without rotors the last joint has 1e-4 to 8e-4 kg m^2: a presliding of 0.15 mrad oscillates at up to 1 rad/s."""
    known = load_arm(robot).settings
    light = Arm(replace(known, robot, rotor_inertia=None, viscous_friction=None, control="admittance"))
    simulation = Simulation(load_scenario("linear_contact"), light, derived_imperfections(light))
    speed = [abs(simulation.plant.dq[-1]) for _ in simulation.run(1.0)]
    assert max(speed) < 0.02


def test_derived_friction_of_heavy_joints_keeps_its_presliding_until_steps_are_long():
    arm = load_arm("ur16e")
    assert derived_imperfections(arm).friction.presliding == 1.5e-4
    assert derived_imperfections(arm, timestep=8e-3).friction.presliding > 3e-4


def test_a_simulation_that_diverges_says_so():
    """MuJoCo's own answer, back to time zero, would let it run for ever."""
    light = Arm(
        replace(load_arm("fr3").settings, "fr3", rotor_inertia=[1e-12] * 7)
    )  # too light for its viscous friction
    simulation = Simulation(load_scenario("linear_contact"), light, derived_imperfections(light))
    with np.errstate(over="ignore"), pytest.raises(DriverError, match=r"diverged.*shorter timestep"):
        list(simulation.run(1.0))


def test_a_simulation_that_diverges_names_the_motors_that_were_at_their_limit(arm):
    simulated, _ = plant(arm, {})
    asked = np.zeros(6)
    asked[1] = 1e4
    expected = r"diverged at .* lower gains, or ask less of shoulder_lift_joint: their motors"
    with np.errstate(all="ignore"), pytest.raises(DriverError, match=expected):
        for _ in range(20_000):
            simulated.step(asked)
    assert simulated.limited_time[1] == pytest.approx(simulated.time)
    assert not np.delete(simulated.limited_time, 1).any()


def test_an_elastic_joint_sags_by_torque_over_stiffness(arm):
    stiffness = [40e3, 38e3, 38e3, 12e3, 12e3, 12e3]
    simulated, _ = plant(arm, {"elasticity": {"stiffness": stiffness}})
    assert simulated.elastic
    for _ in range(400):
        simulated.step(
            arm.gravity(simulated.q) + 2000.0 * (Q - simulated.motor_position) - 100.0 * simulated.motor_velocity
        )
    deflection = simulated.motor_position - simulated.q
    assert deflection == pytest.approx(arm.gravity(simulated.q) / np.array(stiffness), abs=2e-7)
    assert simulated.link_torque == pytest.approx(arm.gravity(simulated.q), abs=0.02)


def test_rigid_and_very_stiff_elastic_joints_move_alike(arm):
    torque = lambda s: arm.gravity(s.q) + np.array([5.0, 20.0, -10.0, 2.0, 1.0, 0.5])  # noqa: E731
    rigid, _ = plant(arm, {}, timestep=5e-4)
    stiff, _ = plant(arm, {"elasticity": {"stiffness": [4e6] * 6}}, timestep=5e-4)
    for _ in range(200):
        rigid.step(torque(rigid))
        stiff.step(torque(stiff))
    assert np.abs(rigid.q - Q).max() > 0.02
    assert stiff.q == pytest.approx(rigid.q, abs=2e-4)


def test_unknown_payload_shows_as_torque_the_model_does_not_have(arm):
    simulated, _ = plant(arm, {"payload": {"mass": 2.0, "com": [0.0, 0.0, 0.1]}})
    extra = simulated.data.qfrc_bias - arm.gravity(Q)
    _position, rotation = arm.tcp_pose(Q)
    jacobian = arm.tcp_jacobian(Q)
    lever = rotation @ [0.0, 0.0, 0.1]
    expected = jacobian[:3].T @ [0, 0, 2 * 9.81] + jacobian[3:].T @ np.cross(lever, [0, 0, 2 * 9.81])
    assert extra == pytest.approx(expected, abs=1e-9)


def test_timing_jitters_delays_and_loses(arm):
    scenario = load_scenario("linear_contact")

    def stamps(**timing):
        settings = from_mapping(ImperfectionSettings, {"timing": timing}, "test")
        sim = Simulation(scenario, arm, settings, 3)
        return sim, np.array([sim.step().stamp_ns for _ in range(300)])

    _, regular = stamps()
    assert (np.diff(regular) == 2_000_000).all()
    _, jittered = stamps(jitter=1e-3)
    assert np.diff(jittered).std() > 3e5 and (np.diff(jittered) > 0).all()
    sim, delayed = stamps(delay=0.01)
    assert sim.time - delayed[-1] * 1e-9 == pytest.approx(0.01, abs=1e-9)
    _, lossy = stamps(loss=0.2)
    assert 0.1 < np.mean(np.diff(lossy) > 2_000_000) < 0.3


def test_groups_scale_by_name():
    settings = scaled(load_imperfections("ur16e"), friction=0.0, torque=2.0)
    assert not settings.friction.enabled and settings.torque.scale == 2.0
    with pytest.raises(ConfigError, match="frictoin"):
        scaled(settings, frictoin=1.0)
    with pytest.raises(ConfigError, match="negative"):
        scaled(settings, friction=-1.0)


def test_wrong_number_of_joints_is_refused():
    with pytest.raises(ConfigError, match="7 joints"):
        open_simulation("plane", "fr3", "ur16e")
