"""Identify mass over inertia of a falling square from its noisy states alone (paper 5).

python examples/identify_drop.py
"""

import numpy as np

from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.studies.planar.table1 import BODIES, STEP, add_noise, random_drop

rng = np.random.default_rng(2)
body = BODIES["square"]
q, v = add_noise(random_drop(body, rng), 40.0, rng)  # (N, 3) [m, m, rad], and its rates; 40 dB
found = identify_drop(body.shape, q, v, STEP, body.friction)
low, high = found.interval
print(f"m/I {found.m_over_i:.3f} 1/m^2, 95 % from {low:.3f} to {high:.3f} (truth {body.mass_over_inertia:.3f})")
for impact in found.impacts:
    print(f"impact of corner {impact.contact} at {STEP * impact.k:.2f} s")
