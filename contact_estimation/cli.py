"""The command line: ``contact-estimation VERB ...``.

One file per verb in :mod:`contact_estimation.commands`; a verb is imported only when it is called, so that ``--help``
is instant and a missing optional dependency of one verb does not break the others.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import importlib
import signal
import sys
import threading
import warnings
from collections.abc import Iterator

from contact_estimation import __version__
from contact_estimation.exceptions import ConfigError, ContactEstimationError

_COMMANDS = "contact_estimation.commands"

#: verb -> (module, one line of help). ``identify`` has verbs of its own.
VERBS = {
    "replay": (f"{_COMMANDS}.replay", "run observers on a recording, without ROS"),
    "view": (f"{_COMMANDS}.view", "show a recording or a live arm on a 3-D page in the browser"),
    "compare": (f"{_COMMANDS}.compare", "compare several observers on one recording with the reference"),
    "evaluate": (f"{_COMMANDS}.evaluate", "run several observers on thousands of recordings, resumable"),
    "convert": (f"{_COMMANDS}.convert", "turn an .npz recording into a bag, or a bag into an .npz"),
    "simulate": (f"{_COMMANDS}.simulate", "run a simulated arm in a scenario and record it, truth included"),
    "rtde-server": (f"{_COMMANDS}.rtde_server", "a simulated UR controller that speaks RTDE on loopback"),
    "fit": (f"{_COMMANDS}.fit", "fit contact parameters to a recording"),
    "mpc": (f"{_COMMANDS}.mpc", "run a closed loop of estimator, MPC and simulated arm"),
    "calibrate": (f"{_COMMANDS}.calibrate", "identify friction, drive gains, biases and payload from free motion"),
    "observability": (f"{_COMMANDS}.observability", "which contact parameters a posture or motion determines"),
    "tune": (f"{_COMMANDS}.tune", "set an estimator's noise from a recording by maximum likelihood"),
    "doctor": (f"{_COMMANDS}.doctor", "list what is installed and what is missing, and measure the loop"),
}

#: ``contact-estimation identify SYSTEM``: system -> (module, one line of help).
IDENTIFY = {
    "planar": (f"{_COMMANDS}.identify_planar", "rigid frictional contact: m/I, forces, friction (paper 5)"),
    "probing": (f"{_COMMANDS}.identify_probing", "contact geometry and dynamics together, by probing (paper 4)"),
    "batch": (f"{_COMMANDS}.identify_batch", "trajectory and parameters of a whole recording (paper 3)"),
}


def build_parser(verb: str | None = None, system: str | None = None) -> argparse.ArgumentParser:
    """Make the parser of the whole command line; only the module of the asked ``verb`` (and ``system``) is imported."""
    parser = argparse.ArgumentParser(prog="contact-estimation", description="Estimate what a robot arm touches.")
    parser.add_argument("--version", action="version", version=f"contact-estimation {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (module, text) in VERBS.items():
        _add(verbs, name, module, text, name == verb)
    identify = verbs.add_parser("identify", help="identify contact models offline (papers 3, 4, 5)")
    systems = identify.add_subparsers(dest="system", metavar="SYSTEM", required=True)
    for name, (module, text) in IDENTIFY.items():
        _add(systems, name, module, text, verb == "identify" and name == system)
    return parser


def _add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, module: str, text: str, wanted: bool
) -> None:
    parser = subparsers.add_parser(name, help=text, description=text)
    if wanted:
        command = importlib.import_module(module)
        command.configure(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else")
        options = [option for option in parser._option_string_actions if option.startswith("--")]
        parser.set_defaults(run=command.run, refuse=parser.error, options=options)


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the words behind the program's name; by default those of the process.

    Returns:
        The exit code: 0 done, 1 something is missing (doctor), 2 an error the user can mend, 3 a result that failed its
        own tests, 130 interrupted.
    """
    try:
        with _interruptible():  # an interrupt may come before its first line has ended
            return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return 130


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt the work, where a launcher has it end the process; a process that ignores it still does."""
    found = signal.getsignal(signal.SIGINT)
    replaced = callable(found) and threading.current_thread() is threading.main_thread()
    try:
        if replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, found)


def _main(argv: list[str]) -> int:
    words = [word for word in argv if not word.startswith("-")]
    try:
        parser = build_parser(*words[:2])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("contact_estimation"):
            raise
        print(
            f"contact-estimation {words[0]}: the Python package of the module '{error.name}' is not installed here. "
            "'pip install -r requirements/core.txt' installs all; 'contact-estimation doctor' says what is missing.",
            file=sys.stderr,
        )
        return 2
    args, unknown = parser.parse_known_args(argv, argparse.Namespace(words=argv))
    if unknown:
        args.refuse(_unknown_text(unknown, args.options))
    plain_format, warnings.formatwarning = warnings.formatwarning, functools.partial(_warning_text, args.verb)
    try:
        if getattr(args, "seed", 0) < 0:
            raise ConfigError(f"--seed must not be negative, found {args.seed}")
        return int(args.run(args) or 0)
    except ContactEstimationError as error:
        print(f"contact-estimation {args.verb}: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a name that is too long, a place that may not be read
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            return 0
        told = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
        print(f"contact-estimation {args.verb}: {told}; choose another file, or make room", file=sys.stderr)
        return 2
    finally:
        warnings.formatwarning = plain_format


def _nobody_reads() -> bool:
    """Whether who read the output has ended, as ``head`` does; a pipe to something else is an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            return True
    return False


def _unknown_text(words: list[str], options: list[str]) -> str:
    """Return the error for words that no argument takes, with the nearest option."""
    near = [match for word in words for match in difflib.get_close_matches(word.partition("=")[0], options, n=1)]
    return f"unrecognized arguments: {' '.join(words)}" + (f" (nearest: {', '.join(near)})" if near else "")


def _warning_text(
    verb: str, message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning: one of the package as a sentence to the user, another one with its line of code."""
    if category is UserWarning:
        return f"contact-estimation {verb}: warning: {message}\n"
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"


if __name__ == "__main__":
    sys.exit(main())
