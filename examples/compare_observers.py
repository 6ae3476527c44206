"""Replay one recording through several observers and print the table of a report.

The simulated joints have no friction. The EKF's settings expect some, so here it is behind the momentum observer.

python examples/compare_observers.py
"""

from simulated_press import press

from contact_estimation import load_arm, open_stream, replay
from contact_estimation.commands.output import text_table
from contact_estimation.viz.reference import reference_of
from contact_estimation.viz.summary import summarise, summary_table

arm = load_arm("ur16e")
recording = press(arm)
reference = reference_of(recording)

figures = {}
for name in ("contact_imm", "ekf", "momentum_manufacturer"):
    stream = open_stream(arm, name, sensors="joint_torque")
    figures[name] = summarise(replay(recording, stream).columns(), reference)
print(text_table(*summary_table(figures)))
