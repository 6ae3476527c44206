"""Read and write a robot's profile as a folder of the user."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

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


def write_profile(settings: RobotSettings, folder: Path) -> Path:
    """Copy everything of a robot's profile, so that ``--robot FOLDER`` loads the robot of these settings.

    Args:
        settings: the robot's settings; they become the folder's ``robot.yaml``.
        folder: what is made. The profile's own folder is left as it is while it has these settings; with other settings
            its ``robot.yaml`` is overwritten, and the comments there are lost.

    Returns:
        The folder.

    Raises:
        ConfigError: the folder holds something else, or cannot be written.
    """
    check_profile_folder(settings, folder)
    source, own = Path(settings.folder) if settings.folder else None, _own(settings, folder)
    if own and (folder / "robot.yaml").is_file() and load_robot_settings(str(folder)) == settings:
        return folder
    description = urdf_path(settings)
    tool = Path(settings.tool)
    named = {"folder": "", "urdf": description.name, "tool": tool.stem}
    text = yaml.safe_dump({**to_mapping(settings), **named}, sort_keys=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside a lone YAML file there are the user's files, no profile.
        if not own and source is not None and (source / "robot.yaml").is_file():
            shutil.copytree(source, folder, dirs_exist_ok=True)
        (folder / "robot.yaml").write_text(text)
        if not (folder / description.name).exists():
            shutil.copy(description, folder / description.name)
        if settings.tool:
            (folder / "tools").mkdir(exist_ok=True)
            (folder / "tools" / tool.name).write_text(tool.read_text())
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written ({error.strerror}); name another folder") from error
    return folder
