"""Estimates as markers for RViz, drawn on a thread of their own: no sample waits for a marker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_estimation.ros.convert import header
from contact_estimation.viz.markers import Shape

#: A viewer removes a marker after this time without an update.
LIFETIME = Duration(sec=1)


class DrawingThread:
    """Calls a function at a rate, beside the thread that takes samples.

    The two share the interpreter. :func:`~contact_estimation.ros.executor.run` makes Python change threads often
    enough that a sample waits for a tenth of a millisecond at most.

    Args:
        draw: what is called.
        rate: how often [Hz].
        failed: called with what ``draw`` raised; the thread goes on.
    """

    def __init__(self, draw: Callable[[], None], rate: float, failed: Callable[[Exception], None]) -> None:
        self._rate, self._draw, self._failed = rate, draw, failed
        self._wake, self._closed = threading.Event(), False
        self._thread = threading.Thread(target=self._work, name="drawing", daemon=True)
        self._thread.start()

    def set_rate(self, rate: float) -> None:
        """Draw at ``rate`` [Hz] from now on."""
        self._rate = rate
        self._wake.set()

    def close(self) -> None:
        """Stop, and wait until nothing is drawn any more."""
        self._closed = True
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            if self._wake.wait(1.0 / self._rate):
                self._wake.clear()
                continue
            try:
                self._draw()
            except Exception as error:  # a defect shall cost a picture, not all later ones
                self._failed(error)


def marker_array(shapes: list[Shape], stamp_ns: int) -> MarkerArray:
    """One marker per shape; the shape's name is the marker's namespace, an invisible shape deletes its marker."""
    return MarkerArray(markers=[_marker(shape, stamp_ns) for shape in shapes])


def _marker(shape: Shape, stamp_ns: int) -> Marker:
    marker = Marker(
        header=header(stamp_ns, shape.frame), ns=shape.name, id=0, action=Marker.ADD if shape.visible else Marker.DELETE
    )
    if not shape.visible:
        return marker
    marker.lifetime = LIFETIME
    marker.color = ColorRGBA(**dict(zip("rgba", shape.colour)))
    marker.scale = Vector3(**dict(zip("xyz", shape.size)))
    if shape.kind == "arrow":
        marker.type = Marker.ARROW
        marker.points = [Point(**dict(zip("xyz", end))) for end in (shape.position, shape.tip)]
    elif shape.kind == "points":
        marker.type = Marker.SPHERE_LIST
        marker.points = [Point(**dict(zip("xyz", point))) for point in shape.points]
    else:
        marker.type = Marker.SPHERE
        marker.pose = Pose(
            position=Point(**dict(zip("xyz", shape.position))),
            orientation=Quaternion(**dict(zip("xyzw", shape.orientation))),
        )
    return marker
