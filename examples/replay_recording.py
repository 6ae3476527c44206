"""Write a recording as a rosbag2, open it again, replay it, and keep the estimates.

python examples/replay_recording.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from simulated_press import press

from contact_estimation import EstimateLog, open_recording, open_stream, replay, write_bag

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
stream = open_stream("ur16e", sensors="joint_torque")
write_bag(folder / "press_bag", press(stream.arm), base_frame=stream.arm.base_frame, tcp_frame=stream.arm.tcp_frame)

recording = open_recording(folder / "press_bag", stream.arm.joint_names)  # or an .npz archive
log = replay(recording, stream)
log.save(folder / "estimates.npz", recording.truth)

columns = EstimateLog.load(folder / "estimates.npz").columns()
error = columns["force"][:, 2] - recording.truth["wrench_tcp"][:, 2]
print(f"{len(log)} samples, {np.count_nonzero(columns['valid'])} valid")
print(f"force error along z {np.sqrt(np.mean(error**2)):.2f} N RMS")
