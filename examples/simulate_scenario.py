"""Run a simulated arm with friction, elastic joints and noisy sensors, and turn single effects off.

python examples/simulate_scenario.py
"""

import numpy as np

from contact_estimation import load_arm
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors.settings import load_imperfections, scaled
from contact_estimation.simulation.session import Simulation

arm = load_arm("ur16e")
for label, changes in (("as measured", {}), ("without torque noise", {"torque": 0.0})):
    imperfections = scaled(load_imperfections(arm.name), **changes)
    simulation = Simulation(load_scenario("linear_contact"), arm, imperfections, seed=1)
    samples = list(simulation.run(0.5))  # the arm stands still above the surface
    # What the torque sensors see beyond the model: noise, ripple, friction, errors of their scale.
    residual = np.array([sample.tau - arm.gravity(sample.q) for sample in samples])
    print(f"{label}: residual torque {np.array2string(residual.std(axis=0), precision=2)} Nm, {len(samples)} samples")
