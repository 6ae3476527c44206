"""Open a recording in the format of its content; its name does not matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.npz import NpzFile, words_of_npz
from contact_estimation.io.recording import Recording, TcpRotation
from contact_estimation.io.topics import ROBOT_TOPIC, TOOL_TOPIC

if TYPE_CHECKING:
    from contact_estimation.io.bag import BagFile

_MAGIC = {b"PK": ".npz", b"\x89MCAP0\r\n": ".mcap", b"SQLite format 3\x00": ".db3"}


def open_recording(path: Path | str, joint_names: Iterable[str] | None = None, **choices: Any) -> Recording:
    """Read all of a recording.

    Args:
        path: a bag, a file of one, or an ``.npz`` archive.
        joint_names: order of the columns; None: that of the recording.
        choices: as :func:`open_file` takes them.

    Raises:
        RecordingError: as of :func:`open_file`.
    """
    return open_file(path, joint_names, **choices).read()


def open_file(
    path: Path | str,
    joint_names: Iterable[str] | None = None,
    *,
    joint_states: str | None = None,
    wrench: str | None = None,
    rate: float | None = None,
    base_frame: str | None = None,
    rotation: TcpRotation | None = None,
) -> NpzFile | BagFile:
    """Open a rosbag2 (folder, ``.mcap`` or ``.db3`` file) or an ``.npz`` archive, to be read block by block.

    Args:
        path: the recording.
        joint_names: the robot's joints: order of the columns, and what must be there. None takes the recording's own.
        joint_states: topic of a bag's joint states (see :class:`~contact_estimation.io.bag.BagFile`).
        wrench: topic of a bag's measured wrench.
        rate: [Hz] of an archive without stamps.
        base_frame: ``frame_id`` of a bag's wrench that has base axes.
        rotation: turns a force in base axes into TCP axes.

    Raises:
        RecordingError: it cannot be read as any of them, or lacks what was asked for.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"{path}: there is no such file or folder")
    for part in [path, *(path.iterdir() if path.is_dir() else ())]:
        if not (part.is_file() or part.is_dir()):  # reading a pipe or a device may wait for ever
            raise RecordingError(f"{part} is no ordinary file; name a recording")
    kind = ".mcap" if path.is_dir() else kind_of(path)
    if kind == ".npz":
        if joint_states or wrench:
            raise RecordingError(f"{path} is an .npz archive and has no topics; leave --joint-states and --wrench out.")
        return NpzFile(path, joint_names, rate, rotation)
    if rate is not None:
        raise RecordingError(f"{path} is a bag and has stamps; leave --rate out.")
    from contact_estimation.io.bag import BagFile

    if path.is_file() and path.suffix != kind:
        raise RecordingError(f"{path} is a {kind} file by its content; rename it to end in {kind}.")
    return BagFile(path, joint_names, joint_states, wrench, base_frame, rotation)


class RecordedArm(NamedTuple):
    """What recordings tell of the arm they were made with.

    Attributes:
        robot: name of the robot (config/robots).
        tool: name of the tool (config/tools) behind its flange; "" where they do not tell.
    """

    robot: str
    tool: str


def recorded_arm(paths: Sequence[Path], tool: str = "", **choices: Any) -> RecordedArm:
    """Return the arm that recordings name, without reading their samples.

    Args:
        paths: at least one recording; those that name no robot are taken to be of the robot that the others name.
        tool: taken instead of what the recordings name; "" takes theirs.
        choices: as :func:`open_file` takes them, for a recording that names no robot.

    Raises:
        RecordingError: none names a robot, a recording that does not cannot be read, or they name different arms.
    """
    told = {path: _told(path) for path in paths}
    named = {path: arm._replace(tool=tool or arm.tool) for path, arm in told.items() if arm.robot}
    for path in told.keys() - named.keys():
        open_file(path, **choices)  # a damaged one says so
    if not named:
        names = ", ".join(map(str, paths))
        raise RecordingError(
            f"{names}: names no robot; give it with --robot, for a launch or a node with robot:=. "
            "'contact-estimation convert RECORDING OUTPUT --robot ROBOT' writes the name into a recording."
        )
    first, arm = next(iter(named.items()))
    for path, other in named.items():
        if other != arm:
            raise RecordingError(
                f"{first} was made with {_shown(arm)}, {path} with {_shown(other)}; give recordings of one arm, or "
                "say with --robot and --tool what all of them are read as"
            )
    if Path(arm.robot).name != arm.robot:  # a file from elsewhere chooses no files of this machine
        raise RecordingError(f"{first} names its robot '{arm.robot}', expected a name without a path; give --robot")
    return arm


def _told(path: Path) -> RecordedArm:
    """Return the names a recording tells, "" where it does not or cannot be read."""
    if path.is_file() and path.suffix == ".npz":
        return RecordedArm(*words_of_npz(path, "robot", "tool"))
    from contact_estimation.io.bag import words_of_bag

    return RecordedArm(*words_of_bag(path, ROBOT_TOPIC, TOOL_TOPIC))


def _shown(arm: RecordedArm) -> str:
    return f"robot '{arm.robot}'" + (f" and tool '{arm.tool}'" if arm.tool else "")


def kind_of(path: Path) -> str:
    """Tell ".npz", ".mcap" or ".db3" by the file's first bytes.

    Args:
        path: of the file.

    Raises:
        RecordingError: empty, or something else.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror})") from error
    if not head:
        raise RecordingError(f"{path}: the file is empty (0 bytes)")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    raise RecordingError(
        f"{path} is no recording: expected a rosbag2 folder, an .mcap, .db3 or .npz file; it starts with {head[:8]!r}. "
        "Columns of a .csv or .npy become a recording with numpy.savez('rec.npz', t=..., q=..., dq=..., tau=...)."
    )
