"""Which code makes a result: the package's version, and a hash of its sources, which change more often."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from contact_estimation import __version__

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def code_version() -> str:
    """Return the package's version with a hash of its sources, such as ``0.1.0+3f2a91c05b7e``."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)}\0".encode())
        digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
