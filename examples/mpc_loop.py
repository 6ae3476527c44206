"""Close the loop of estimator, contact-aware MPC and simulated arm; `contact-estimation mpc plane` reports on it.

python examples/mpc_loop.py
"""

import numpy as np

from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, load_loop_settings

settings = load_loop_settings("plane", "fr3")
loop = ClosedLoop(settings, LoopOptions(seed=1, controller="mpc"))  # or pi, admittance, feedforward
record = loop.run(1.0)
error = (record.force - record.force_wanted)[:, record.axes]
states = ", ".join(sorted({str(state) for state in record.state}))
print(f"{len(record.t)} samples, force error at the end {np.abs(error[-1]).max():.2f} N, states: {states}")
