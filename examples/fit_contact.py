"""Fit stiffness, rest position and contact point to a recording, with standard deviations.

python examples/fit_contact.py
"""

from simulated_press import STIFFNESS, press

from contact_estimation import UnbiasedSettings, fit_unbiased, load_arm, load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings

arm = load_arm("ur16e")
settings = load_observer_settings("ekf")  # its contacts are the start
options = UnbiasedSettings(passes=2)
found = fit_unbiased(arm, settings, load_sensor_settings("joint_torque"), [press(arm)], options)
contact = found.contacts[0]
print(f"stiffness {contact.stiffness:.0f} +- {contact.stiffness_std:.0f} N/m (truth {STIFFNESS:.0f})")
print(f"rest position {contact.rests[0].round(5)} m")
