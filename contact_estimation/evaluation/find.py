"""Recordings below folders: bags as the folders they are, bare bag files and archives."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from contact_estimation.exceptions import RecordingError

_BAG_FILES = (".mcap", ".db3")


def find_recordings(places: Iterable[str]) -> list[Path]:
    """Find what ``places`` name.

    Args:
        places: recordings, folders of recordings at any depth, and patterns of both (``*``, ``?``, ``[...]``, ``**``).

    Returns:
        The recordings, each once, in the order of the places and of their names.

    Raises:
        RecordingError: a place has none.
    """
    found: dict[Path, None] = {}
    for place in places:
        matches = [Path(place)] if Path(place).exists() else [Path(p) for p in sorted(glob.glob(place, recursive=True))]
        recordings = [recording for match in matches for recording in _below(match, asked=True)]
        if not recordings:
            raise RecordingError(
                f"{place}: no recording there; expected rosbag2 folders, .mcap, .db3 or .npz files, folders of them, "
                "or a quoted pattern such as 'bags/*/press_*'"
            )
        found |= dict.fromkeys(recordings)
    return list(found)


def _below(path: Path, asked: bool = False) -> Iterator[Path]:
    """Yield ``path`` where it is a recording, else the recordings in it; a file that was ``asked`` for is one."""
    if not path.is_dir():
        if asked or path.suffix in (".npz", *_BAG_FILES):
            yield path
    elif _is_bag(path):
        yield path
    else:
        for part in sorted(path.iterdir()):
            yield from _below(part)


def _is_bag(folder: Path) -> bool:
    """Whether a folder is one rosbag2; one whose recorder was killed has no metadata.yaml."""
    return (folder / "metadata.yaml").exists() or sum(part.suffix == ".mcap" for part in folder.iterdir()) == 1
