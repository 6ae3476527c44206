"""Shapes of :mod:`contact_estimation.viz.markers` as a MarkerArray."""

from __future__ import annotations

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_estimation.ros.convert import header
from contact_estimation.viz.markers import Shape

#: A viewer removes a marker after this time without an update.
LIFETIME = Duration(sec=1)


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
