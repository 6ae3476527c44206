"""Files that tests read but the project does not hold: real recordings and robot numbers, in a folder beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: ``CONTACT_ESTIMATION_SHARED``, else the folder ``shared`` beside the project's.
SHARED = Path(os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared")


def shared_file(name: str) -> Path:
    """Path of the shared file ``name`` (such as ``data/ur16e_press/ur_vertical_3.npz``).

    Where it is absent the test is skipped by that name; under ``CI=true`` it fails, so that CI cannot pass by skipping.
    """
    path = SHARED / name
    if not path.exists():
        text = f"{name} is not in {SHARED} (set CONTACT_ESTIMATION_SHARED to the folder that holds it)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text)
        pytest.skip(text)
    return path
