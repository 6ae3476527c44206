"""Stiffness of a simulated surface as measured from outside.

It is the force at the flange over the penetration by forward kinematics.

python benchmark/surface_stiffness.py
"""

from __future__ import annotations

from contact_estimation.settings import to_mapping
from contact_estimation.simulation.session import open_simulation


def measure(stiffness: float) -> float:
    """Secant stiffness [N/m] between two depths at rest."""
    surface = to_mapping(open_simulation("linear_contact").scenario.surfaces[0]) | {
        "stiffness": stiffness,
        "friction": 0.0,
    }
    motion = [{"duration": 0.5, "move": [0, 0, z]} for z in (-0.0014, -0.0014, -0.0020, -0.0020)]
    simulation = open_simulation("linear_contact", imperfections="ideal", surfaces=[surface], motion=motion)
    samples = list(simulation.run())
    points = []
    for sample in (samples[498], samples[998]):
        position, rotation = simulation.arm.tcp_pose(sample.q)
        points.append((position[2], (rotation @ sample.wrench_tcp[:3])[2]))
    return (points[1][1] - points[0][1]) / (points[0][0] - points[1][0])


if __name__ == "__main__":
    print("| set [N/m] | measured [N/m] | error [%] |\n|---|---|---|")
    for value in (1e3, 3e3, 1e4, 3e4, 1e5):
        measured = measure(value)
        print(f"| {value:.0f} | {measured:.2f} | {100 * (measured / value - 1):+.4f} |")
