"""Identify joint friction from free motion, with intervals. Real recordings go through `contact-estimation calibrate`.

python examples/calibrate_joints.py
"""

import numpy as np

from contact_estimation import Recording, load_arm
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.outcome import calibration

COULOMB = np.array([6.0, 7.0, 5.0, 1.5, 1.2, 1.0])  # [Nm], to be found again

arm = load_arm("ur16e")
t = np.arange(0.0, 12.0, 0.008)
phase = np.outer(t, 0.9 + 0.23 * np.arange(arm.n))  # every joint at a frequency of its own
q = np.array([0.0, -1.4, 1.6, -1.8, -1.5, 0.0]) + 0.4 * np.sin(phase)
dq, ddq = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
torque = np.array([arm.mass(a) @ c + arm.coriolis(a, b) + arm.gravity(a) for a, b, c in zip(q, dq, ddq)])
torque += COULOMB * np.tanh(dq / 1e-3) + np.random.default_rng(0).normal(0.0, 0.2, torque.shape)

recording = Recording((t * 1e9).astype(int), arm.joint_names, q, dq, torque, "free motion")
settings = CalibrationSettings(identify=[])  # friction and biases alone
friction = calibration(arm, identify(arm, [recording], settings), settings).friction
for name, found, std, true in zip(arm.joint_names, friction.coulomb, friction.coulomb_std, COULOMB):
    print(f"{name:20s} Coulomb friction {found:5.2f} +- {std:.2f} Nm (truth {true:.2f})")
