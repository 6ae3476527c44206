"""Nodes on the loopback interface only, unless the user chooses another network.

The discovery range ``LOCALHOST`` limits who is discovered. Its sockets still stand on every interface: anyone who
knows a port can send. With Fast DDS a profile puts them on 127.0.0.1. Nodes of both kinds discover each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from contact_estimation.settings import share_file

_RANGE, _LOCALHOST = "ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"
#: Names of the variable by which Fast DDS 2 and 3 find their profile.
_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
#: Variables by which a user chooses peers, interfaces or transports.
_CHOICES = ("ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY", "FASTDDS_BUILTIN_TRANSPORTS", *_PROFILES)


def loopback_variables(environment: Mapping[str, str], rmw: str) -> dict[str, str]:
    """Environment variables that keep a node's sockets on the loopback interface.

    Args:
        environment: of the process. A range or a profile in it is the user's choice and stays.
        rmw: identifier of the ROS middleware.

    Returns:
        The variables to set: for other middlewares than Fast DDS only the discovery range.
    """
    if environment.get(_RANGE, _LOCALHOST) != _LOCALHOST:
        return {}
    if not rmw.startswith("rmw_fastrtps") or any(environment.get(name) for name in _CHOICES):
        return {_RANGE: _LOCALHOST}
    profile = str(share_file("config", "network", "loopback.xml"))
    # With the range LOCALHOST rmw_fastrtps would add a transport of its own to those of the profile.
    return {_RANGE: "SYSTEM_DEFAULT", **dict.fromkeys(_PROFILES, profile)}


@contextmanager
def loopback_by_default(rmw: str) -> Iterator[None]:
    """Let nodes that are made inside stay on the loopback interface, unless the user chose another network."""
    wanted = loopback_variables(os.environ, rmw)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
