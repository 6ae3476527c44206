"""The one root of every error this package raises on purpose.

Each message says what was given, what was expected and what to do; the command line prints the message alone (no
traceback) and exits with 2.
"""

from collections.abc import Iterable


class ContactEstimationError(Exception):
    """Root of the package's errors: catch it to catch everything the package raises on purpose."""


class ConfigError(ContactEstimationError, ValueError):
    """A setting is unknown, missing, of the wrong type or out of range."""


class ModelError(ContactEstimationError, ValueError):
    """A robot description cannot be used: no inertia, unknown joint or frame, wrong number of joints."""


class RecordingError(ContactEstimationError, ValueError):
    """A recording is empty, truncated, or lacks what was asked of it."""


class CodegenError(ContactEstimationError, RuntimeError):
    """Generated code could not be compiled, loaded or cached."""


class IdentificationError(ContactEstimationError, ValueError):
    """Data do not determine what was asked: too little excitation, contradictory input, no convergence."""


class JobError(ContactEstimationError, RuntimeError):
    """Independent tasks cannot be run where they should, or one that the whole depends on failed."""


class DriverError(ContactEstimationError, RuntimeError):
    """A robot, its controller or its connection is not in a state in which it can be used."""


class StaleSampleError(DriverError):
    """The newest sample of the robot is too old to command from; the next one may do."""


def refuse_names(owner: str, **arguments: tuple[object, str]) -> None:
    """Refuse a name where the thing is expected that a loader makes of it.

    Args:
        owner: who expects it.
        arguments: by name, what was given, and the loader.

    Raises:
        ConfigError: one of them is a name.
    """
    for argument, (given, loader) in arguments.items():
        if isinstance(given, str):
            raise ConfigError(f"{owner}: {argument} is the name '{given}'; give {loader}('{given}')")


def shape_error(owner: str, name: str, given: Iterable[int], expected: Iterable[object]) -> ContactEstimationError:
    """Make the error for an array of the wrong shape, naming the owner, the argument and both shapes."""
    return ConfigError(f"{owner}: {name} has shape {tuple(given)}, expected {tuple(expected)}")
