"""What several verbs read and write: recordings, EKF configurations, YAML files."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.atomic_write import atomic_write_text
from contact_estimation.commands.output import check_output_file, check_writable, warn
from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.settings import find_config

if TYPE_CHECKING:
    from contact_estimation.filters.settings import EkfSettings, SensorSettings
    from contact_estimation.io.bag import BagFile
    from contact_estimation.io.npz import NpzFile
    from contact_estimation.io.recording import Recording
    from contact_estimation.jobs import Executor
    from contact_estimation.robot import Arm


#: What :func:`load_robot` takes without ``--robot``, for the help.
RECORDED = "the robot and tool that the recording names"


def add_robot_argument(parser: argparse.ArgumentParser, required: bool = True, default: str = "") -> None:
    """Declare ``--robot`` and ``--tool``, whose values :func:`~contact_estimation.robot.load_arm` takes.

    Args:
        parser: of the verb.
        required: whether the verb needs it.
        default: what the verb takes without it, for the help; :data:`RECORDED` where :func:`load_robot` loads it.
    """
    text = "robot: a name in config/robots, or a profile of your own"
    parser.add_argument("--robot", required=required, help=text + (f" (default {default})" if default else ""))
    add_tool_argument(parser)


def add_tool_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--tool``."""
    text = "tool behind the flange: a name in config/tools, or a YAML file (default what the robot's profile has)"
    parser.add_argument("--tool", default="", metavar="NAME", help=text)


def add_observers_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--observers``, a list of names in ``args.observers``."""

    def names(text: str) -> list[str]:
        found = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not found:
            raise argparse.ArgumentTypeError("names no observer; give names in config/observers, separated by commas")
        return found

    default = "contact_imm,ekf,momentum"
    text = f"observers, separated by commas: names in config/observers, or YAML files (default {default})"
    parser.add_argument("--observers", type=names, default=names(default), metavar="A,B,C", help=text)


def add_recording_arguments(parser: argparse.ArgumentParser, nargs: str | None = None, wrench: bool = True) -> None:
    """Declare RECORDING and how it is read; :func:`open_for` opens it.

    Args:
        parser: of the verb.
        nargs: None for one (``args.recording``), "?" for one or none, "+" for several (``args.recordings``).
        wrench: whether a measured wrench is of use to the verb.
    """
    name, text = ("recordings" if nargs == "+" else "recording"), "rosbag2 (folder, .mcap or .db3) or .npz archive"
    parser.add_argument(name, type=Path, nargs=nargs, metavar="RECORDING", help=text)
    add_topic_arguments(parser, wrench)


def add_topic_arguments(parser: argparse.ArgumentParser, wrench: bool = True) -> None:
    """Declare how recordings are read; ``wrench``: whether a measured wrench is of use to the verb."""
    text = "JointState topic of a bag (default /joint_states, or the only one)"
    parser.add_argument("--joint-states", metavar="TOPIC", help=text)
    if wrench:
        text = (
            "WrenchStamped topic of a bag, measured force on the robot (default the force_torque_sensor_broadcaster's)"
        )
        parser.add_argument("--wrench", metavar="TOPIC", help=text)
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of an .npz archive without stamps")


def add_workers_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where many tasks run; :func:`executor_of` opens it."""
    add = parser.add_argument
    add("--workers", type=int, metavar="N", help="processes (default one per core; 0: work in this process)")
    add("--cluster", metavar="ADDRESS", help="work on the Dask cluster of this scheduler, such as tcp://host:8786")


def executor_of(args: argparse.Namespace, tasks: int) -> Executor:
    """Open what ``--workers`` and ``--cluster`` ask for; one task alone is done in this process by default.

    Raises:
        JobError: it cannot be opened.
    """
    from contact_estimation.jobs import open_executor

    return open_executor(0 if args.workers is None and tasks == 1 else args.workers, args.cluster)


def load_robot(args: argparse.Namespace, recordings: Sequence[Path]) -> Arm:
    """Load the robot of ``--robot``, or without it the one that the recordings name, with the tool they name.

    Args:
        args: of a verb with :func:`add_robot_argument`; its ``robot`` and ``tool`` become the names that are loaded.
        recordings: which the verb reads.

    Raises:
        RecordingError: ``--robot`` is absent and no recording names a robot, or they name different ones.
        ConfigError: there is no robot or tool of that name, or its files have an error.
    """
    from contact_estimation.io.open import recorded_arm
    from contact_estimation.robot import load_arm

    if args.robot is not None:
        return load_arm(args.robot, args.tool)
    choices = {"joint_states": args.joint_states, "wrench": getattr(args, "wrench", None), "rate": args.rate}
    args.robot, args.tool = recorded_arm(recordings, args.tool, **choices)
    try:
        return load_arm(args.robot, args.tool)
    except ConfigError as error:
        where = ", ".join(map(str, recordings))
        raise ConfigError(f"{where} names its robot: {error} --robot and --tool choose others.") from error


def open_for(arm: Arm | None, args: argparse.Namespace, path: Path | None = None) -> NpzFile | BagFile:
    """Open a recording, to be read block by block, with the joints, in the order, of an arm.

    Args:
        arm: the robot it was made with; None takes the joints as recorded.
        args: of a verb with :func:`add_recording_arguments`.
        path: which one; by default ``args.recording``.

    Raises:
        RecordingError: it cannot be read, or does not fit the arm.
        ConfigError: it names a sensor set that does not exist, and the user names none.
    """
    from contact_estimation.evaluation.scoring import open_for_arm

    path = path or args.recording
    recording = open_for_arm(arm, path, args.joint_states, getattr(args, "wrench", None), args.rate)
    if arm is not None:
        _compare_names(arm, args, path, recording.head)
    return recording


def _compare_names(arm: Arm, args: argparse.Namespace, path: Path, head: Recording) -> None:
    """Warn where a recording names another robot or tool, or no sensor set; refuse the name of one that is unknown."""
    if head.robot and head.robot not in (arm.name, getattr(args, "robot", "")):  # a fit may have the papers' model
        warn(args, f"{path} says that it was made with robot '{head.robot}'; it is read as one of robot '{arm.name}'")
    if head.tool and head.tool != arm.tool_name:
        mine = f"tool '{arm.tool_name}'" if arm.tool_name else "no tool"
        warn(
            args,
            f"{path} says that it was made with tool '{head.tool}'; it is read with {mine}: "
            f"name it with --tool {head.tool}",
        )
    if not head.sensors and getattr(args, "sensors", "") is None:
        warn(
            args,
            f"{path} does not say what its efforts are; they are read by the sensor set of the observer, else of the "
            f"robot ('{arm.settings.sensors}'): name it with --sensors",
        )
    if head.sensors and not getattr(args, "sensors", None):
        try:
            find_config("sensors", head.sensors, arm.settings.folder)
        except ConfigError as error:
            other = " --sensors chooses another." if hasattr(args, "sensors") else ""
            raise ConfigError(f"{path} names its sensor set: {error}{other}") from error


def load_sensors(
    arm: Arm, recordings: Sequence[Recording], observer: str | None = None, chosen: str | None = None
) -> SensorSettings:
    """Load the sensor set that all recordings were made with.

    Args:
        arm: the robot; names of its profile's sensor sets come first.
        recordings: of one set; those that name none are taken to be of the set that the others name.
        observer: set that the observer's settings name; taken where no recording names one, before the robot's.
        chosen: taken instead of all of these.

    Raises:
        ConfigError: there is no such set, or recordings name sets that differ.
    """
    from contact_estimation.filters.settings import load_sensor_settings

    named = {chosen: ""} if chosen else {r.sensors: r.source for r in reversed(recordings) if r.sensors}
    sets = [load_sensor_settings(n, arm.settings.folder) for n in named or (observer or arm.settings.sensors,)]
    if any(other != sets[0] for other in sets):
        shown = ", ".join(f"{source} names '{name}'" for name, source in named.items())
        raise ConfigError(f"the recordings have different sensor sets: {shown}; give recordings of one set")
    return sets[0]


def read_recordings(
    arm: Arm, args: argparse.Namespace, paths: Sequence[Path], observer: str | None
) -> tuple[list[Recording], SensorSettings]:
    """Read recordings of one sensor set, and load it.

    Args:
        arm: the robot they were made with.
        args: of a verb with :func:`add_recording_arguments`.
        paths: of the recordings.
        observer: set that the observer's settings name.

    Raises:
        RecordingError: as of :func:`open_for` and :func:`refuse_repeated`.
        ConfigError: as of :func:`open_for` and :func:`load_sensors`.
    """
    recordings = [open_for(arm, args, path).read() for path in paths]
    sensors = load_sensors(arm, recordings, observer)
    refuse_repeated(recordings)
    return recordings, sensors


def refuse_repeated(recordings: Sequence[Recording]) -> None:
    """Refuse samples that are given twice: they would count as two runs that agree.

    Args:
        recordings: of one verb, also a file and what ``convert`` made of it.

    Raises:
        RecordingError: two of them hold the same samples.
    """
    import numpy as np

    for one, other in itertools.combinations(recordings, 2):
        if all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in ("q", "dq", "tau")):
            raise RecordingError(
                f"{one.source} and {other.source} hold the same samples, which would count as two runs that agree; "
                "give each recording once"
            )


def ekf_settings(config: str, user: str) -> EkfSettings:
    """Load the observer configuration ``config`` for a verb that works on an EKF.

    Args:
        config: shipped name or YAML file.
        user: what needs it, for the error.

    Raises:
        ConfigError: it cannot be loaded, or is of another kind.
    """
    from contact_estimation.filters.registry import load_observer_settings
    from contact_estimation.filters.settings import EkfSettings

    settings = load_observer_settings(config)
    if not isinstance(settings, EkfSettings):
        raise ConfigError(
            f"--config {config} is an observer of kind '{settings.observer}'; {user} needs one of kind 'ekf'"
        )
    return settings


def names_settings_file(out: Path) -> bool:
    """Return whether ``--out`` names a file of settings; else it names the folder of a profile."""
    return out.suffix in (".yaml", ".yml")


def check_profile_out(robot: Arm, out: Path | None, recordings: Sequence[Path]) -> None:
    """Refuse what ``--out`` names, a profile's folder or a file of settings, before the work.

    Args:
        robot: whose profile it becomes.
        out: a folder, or a file that ends in ``.yaml``; None where nothing is written.
        recordings: files and folders that the verb reads.

    Raises:
        ConfigError: the folder holds something else, the file is a folder or a recording, or it cannot be written.
    """
    from contact_estimation.robot.profile import check_profile_folder

    if out is None:
        return
    if names_settings_file(out):
        check_output_file(out, recordings)
    else:
        check_profile_folder(robot.settings, out)
        check_writable(out, "--out")


def yaml_text(mapping: dict[str, Any], header: str) -> str:
    """Return ``mapping`` as YAML below comment lines.

    Args:
        mapping: plain values.
        header: text of the comment.
    """
    import yaml

    comment = "".join(f"# {line}\n" for line in header.splitlines())
    return comment + str(yaml.safe_dump(mapping, sort_keys=False, default_flow_style=None))


def write_settings_file(path: Path, text: str) -> None:
    """Write the file of settings that ``--out`` names, making its folder.

    Args:
        path: the file.
        text: its content, as of :func:`yaml_text`.

    Raises:
        ConfigError: the file cannot be written; an earlier one of this name is as before.
    """
    try:
        atomic_write_text(path, text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}); choose another --out") from error
