"""Read and write a robot's profile as a folder of the user."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

from contact_estimation.atomic_write import atomic_write
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.description import urdf_path
from contact_estimation.robot.settings import RobotSettings, load_robot_settings
from contact_estimation.settings import to_mapping


def check_profile_folder(settings: RobotSettings, folder: Path) -> None:
    """Refuse a folder for a robot's profile that holds something else; call it before the work that fills it.

    Args:
        settings: of the robot.
        folder: what is to be made.

    Raises:
        ConfigError: the folder holds something else.
    """
    if folder.exists() and not _own(settings, folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already and is not the profile of robot '{settings.name}'; name another")


def _own(settings: RobotSettings, folder: Path) -> bool:
    """Whether a folder is the one that the settings come from."""
    return bool(settings.folder) and folder.exists() and folder.samefile(settings.folder)


def write_profile(settings: RobotSettings, folder: Path, texts: Mapping[str, str] | None = None) -> Path:
    """Copy everything of a robot's profile, so that ``--robot FOLDER`` loads the robot of these settings.

    Every file is written completely or not at all, and on a full disk none of those that are there is replaced.
    ``robot.yaml`` gets its name last; no folder loads without it.

    Args:
        settings: the robot's settings; they become the folder's ``robot.yaml``.
        folder: what is made. The profile's own folder keeps its ``robot.yaml`` while it has these settings; with other
            settings it is overwritten, and the comments there are lost.
        texts: path within the folder -> content, of files that replace the profile's own.

    Returns:
        The folder.

    Raises:
        ConfigError: the folder holds something else, or cannot be written; a new folder is then removed.
    """
    check_profile_folder(settings, folder)
    source, own, new = Path(settings.folder) if settings.folder else None, _own(settings, folder), not folder.exists()
    unchanged = own and (folder / "robot.yaml").is_file() and load_robot_settings(str(folder)) == settings
    texts, has_profile = dict(texts or {}), source is not None and (source / "robot.yaml").is_file()
    # Beside a lone YAML file there are the user's files, no profile.
    copies = _files(Path(settings.folder)) if has_profile and not own else {}
    if not unchanged:
        description, tool = urdf_path(settings), Path(settings.tool)
        if not (folder / description.name).exists():
            copies.setdefault(description.name, description)
        if settings.tool:
            copies[f"tools/{tool.name}"] = tool
        named = {"folder": "", "urdf": description.name, "tool": tool.stem}
        texts["robot.yaml"] = yaml.safe_dump({**to_mapping(settings), **named}, sort_keys=False)
    try:
        for name, copied in copies.items():
            if name not in texts:
                _copy(copied, folder / name)
        with contextlib.ExitStack() as stack:  # leaves in reverse: no file is replaced before all of them are written
            for name in reversed(texts):
                file = stack.enter_context(atomic_write(folder / name))
                file.write(texts[name].encode())
                file.flush()
    except OSError as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise ConfigError(f"{folder} cannot be written ({error.strerror}); name another folder") from error
    return folder


def _files(folder: Path) -> dict[str, Path]:
    """Return all files below a folder by their paths in it."""
    found = (Path(at) / name for at, _, names in os.walk(folder, followlinks=True) for name in names)
    return {file.relative_to(folder).as_posix(): file for file in found}


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as file, atomic_write(target) as copy:
        shutil.copyfileobj(file, copy)
