"""One short finger recording."""

import sys

from batch_scenes import finger_recording  # noqa: F401

if sys.version_info < (3, 11):
    collect_ignore_glob = ["test_*.py"]  # mujoco.sysid needs Python 3.11
