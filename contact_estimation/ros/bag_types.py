"""Message types of bags, including those of this package, to write serialised messages unchanged."""

from __future__ import annotations

from rosbags.interfaces.typing import Typesdict
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from contact_estimation.settings import share_file


def typestore() -> Typestore:
    """ROS 2 Jazzy's types and those of ``msg/``."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types: Typesdict = {}
    for path in sorted(share_file("msg").glob("*.msg")):
        types |= get_types_from_msg(path.read_text(), f"contact_estimation/msg/{path.stem}")
    store.register(types)
    return store
