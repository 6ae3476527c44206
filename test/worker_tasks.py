"""Functions for worker processes, which import them by name: half a number, and ending their worker."""

import os
import signal
from pathlib import Path


def half(number):
    return number / 2 if number != 3 else number / 0


def kill_once(mark):
    """Ends its worker where ``mark`` is a path that is not there yet; returns its name."""
    path = Path(mark)
    if path.suffix and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def started_interruptible(_):
    """Whether Ctrl-C was in force when the worker began, as the mask tells that it began with."""
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def kill(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number
