"""MuJoCo scenes and one short finger recording, shared by the batch tests."""

import pytest

#: A hinged arm and a ball on a floor: a plain and a quaternion coordinate, one contact, inertial sensors.
BALL = """
<mujoco>
  <option timestep="0.0005" integrator="Euler" tolerance="1e-12"/>
  <worldbody>
    <geom name="floor" type="box" size="1 1 0.1" pos="0 0 -0.1" contype="0" conaffinity="0"/>
    <body name="arm" pos="0 0 0.3">
      <inertial mass="0.3" pos="0 0 0" diaginertia="1e-3 2e-3 3e-3"/>
      <joint name="turn" axis="0 1 0" damping="0.01" armature="0.01"/>
      <site name="wrist" pos="0.1 0 0"/>
    </body>
    <body name="ball" pos="0.3 0 0.05">
      <freejoint name="ball"/>
      <inertial mass="0.5" pos="0 0 0" diaginertia="1e-3 1.2e-3 0.8e-3"/>
      <geom name="shell" type="sphere" size="0.05" contype="0" conaffinity="0"/>
      <site name="imu" pos="0.01 0 0"/>
    </body>
  </worldbody>
  <contact>
    <pair name="ball_on_floor" geom1="shell" geom2="floor" condim="3" friction="0.4 0.4 0 0 0" solref="-2000 -10"
          solreffriction="-1 -20"/>
  </contact>
  <sensor>
    <jointpos name="turn" joint="turn"/>
    <framepos name="position" objtype="xbody" objname="ball"/>
    <framequat name="orientation" objtype="xbody" objname="ball"/>
    <gyro name="gyro" site="imu"/><accelerometer name="accelerometer" site="imu"/>
    <force name="wrist_force" site="wrist"/>
  </sensor>
</mujoco>
"""


@pytest.fixture(scope="session")
def finger_recording():
    """One simulated finger recording."""
    from contact_estimation.studies.batch import finger

    return finger.simulate(3, 2.4)
