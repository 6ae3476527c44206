"""Contact estimation and contact-aware control of robot arms.

This module exports the names that a script or notebook needs. Each is imported at its first use, so that
``import contact_estimation`` is fast. ``docs/architecture.md`` describes the layers of the package, and
``test/test_architecture.py`` checks them.

Example:
    >>> from contact_estimation import load_arm, open_recording, open_stream, replay
    >>> arm = load_arm("ur16e")
    >>> recording = open_recording("press_bag", arm.joint_names)
    >>> replay(recording, open_stream(arm, sensors=recording.sensors)).columns()["force"]
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # 'as' marks a name as public for type checkers
    from contact_estimation.exceptions import (
        CodegenError as CodegenError,
        ConfigError as ConfigError,
        ContactEstimationError as ContactEstimationError,
        DriverError as DriverError,
        IdentificationError as IdentificationError,
        ModelError as ModelError,
        RecordingError as RecordingError,
    )
    from contact_estimation.filters.observer import (
        ContactState as ContactState,
        Estimate as Estimate,
        Observer as Observer,
    )
    from contact_estimation.filters.registry import (
        load_observer_settings as load_observer_settings,
        make_observer as make_observer,
        open_stream as open_stream,
    )
    from contact_estimation.filters.stream import SampleStream as SampleStream
    from contact_estimation.fit.unbiased import UnbiasedSettings as UnbiasedSettings, fit_unbiased as fit_unbiased
    from contact_estimation.io.bag_writer import write_bag as write_bag
    from contact_estimation.io.export import EstimateLog as EstimateLog
    from contact_estimation.io.npz import write_npz as write_npz
    from contact_estimation.io.open import open_recording as open_recording
    from contact_estimation.io.recording import Recording as Recording
    from contact_estimation.io.replay import replay as replay
    from contact_estimation.robot import Arm as Arm, load_arm as load_arm

# The ROS build generates ``contact_estimation.msg`` into the install prefix; extending the path lets a source-first
# run (pytest, ``python -m contact_estimation``) find those messages beside the live source.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"

#: Module of every public name.
_MODULES = {
    "contact_estimation.robot": ("Arm", "load_arm"),
    "contact_estimation.filters.registry": ("load_observer_settings", "make_observer", "open_stream"),
    "contact_estimation.filters.observer": ("ContactState", "Estimate", "Observer"),
    "contact_estimation.filters.stream": ("SampleStream",),
    "contact_estimation.io.recording": ("Recording",),
    "contact_estimation.io.open": ("open_recording",),
    "contact_estimation.io.bag_writer": ("write_bag",),
    "contact_estimation.io.npz": ("write_npz",),
    "contact_estimation.io.export": ("EstimateLog",),
    "contact_estimation.io.replay": ("replay",),
    "contact_estimation.fit.unbiased": ("UnbiasedSettings", "fit_unbiased"),
    "contact_estimation.exceptions": (
        "CodegenError",
        "ConfigError",
        "ContactEstimationError",
        "DriverError",
        "IdentificationError",
        "ModelError",
        "RecordingError",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'contact_estimation' has no attribute '{name}'; public are: {', '.join(_HOME)}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
