"""Quality of service in two tiers: full rate for processing, decimated and reliable for visualisation."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

#: Reliable with an unbounded queue, for a recording that is replayed to the estimators. A reader that requests this
#: receives nothing from a publisher that offers less.
COMPLETE = QoSProfile(
    depth=1000,
    history=HistoryPolicy.KEEP_ALL,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

#: Full-rate samples and estimates: a late sample is worse than a lost one. A queue of one would drop in bursts.
SENSOR = QoSProfile(
    depth=10,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)

#: What an estimator listens with: it catches up in a moment after the machine was busy, but a lost sample costs
#: accuracy. Half a second at 1 kHz.
SAMPLES = QoSProfile(
    depth=500,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)

#: Decimated topics for RViz and dashboards.
VISUALIZATION = QoSProfile(
    depth=10,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

#: Commands to a controller of another package: the newest counts, and it may ask for reliability.
COMMANDS = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

#: The newest message only, of a publisher of any reliability: an old command or an old picture is worth nothing.
NEWEST = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)

#: States that change seldom: a late subscriber gets the last one.
LATCHED = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def latched_for(seconds: float) -> QoSProfile:
    """Return :data:`LATCHED` for a state that is repeated: it expires after ``seconds`` [s] of silence."""
    return QoSProfile(
        depth=1,
        history=HistoryPolicy.KEEP_LAST,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
        lifespan=Duration(seconds=seconds),
    )


#: A recorder accepts what any publisher offers; the queue covers bursts.
RECORDER = QoSProfile(
    depth=500,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
