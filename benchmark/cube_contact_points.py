"""Which points of the ContactNets cube touch the ground: is m/I = 457 within reach of any set of body-fixed points?

    python benchmark/cube_contact_points.py FILE.npz [--side 0.1048] [--rate 148]

Every corner gets the same K contact points (offsets along its own three edges, negative inwards); an impact acts at
the one that explains its rotation and its height best. Points and m/I are fitted to half of the tosses; of the other
half's rotations it is shown what the best of these points leaves (which point acts is chosen per impact). The centre
of mass from free flight is printed first: it is not what moves the levers.
"""

from __future__ import annotations

import argparse

import numpy as np

from contact_estimation.identify.planar.flight_checks import centre_of_mass
from contact_estimation.identify.planar.tosses import corner_impacts, load_tosses

HEIGHT = 200.0  # rad/s per metre: 5 mm of height misfit weigh as 1 rad/s
STARTS, ROUNDS = 8, 60


class Impacts:
    """Impacts with the corner's edges (n, 3, 3) pointing outwards [columns] and its depth under the ground (n,) [m]."""

    def __init__(self, found):
        """From ``CornerImpacts`` whose corner is below the ground."""
        inward = found.section - found.r[:, None]
        inside = np.linalg.norm(inward, axis=2).min(axis=1) > 0.0
        inward = inward[inside]
        self.depth = inward[:, 0, 2]
        self.edges = -(inward / np.linalg.norm(inward, axis=2, keepdims=True)).transpose(0, 2, 1)
        self.r, self.dv, self.dw = found.r[inside], found.dv[inside], found.dw[inside]
        self.toss = found.toss[inside]

    def misfit(self, points, ratio):
        """|dw - ratio r x dv| (n, K) [rad/s] with each point as lever, and the points' heights (n, K) [m]."""
        levers = self.r[:, None] + np.einsum("nij,kj->nki", self.edges, points)
        heights = -self.depth[:, None] + np.einsum("nj,kj->nk", self.edges[:, 2], points)
        return np.linalg.norm(self.dw[:, None] - ratio * np.cross(levers, self.dv[:, None]), axis=2), heights

    def fit(self, rows, count, ratio=None, seed=0):
        """Cost, m/I and points (count, 3) [m] of ``rows``; ``ratio`` given is kept."""
        return min((self._descend(rows, count, ratio, np.random.default_rng(seed + i)) for i in range(STARTS)),
                   key=lambda answer: answer[0])

    def _descend(self, rows, count, fixed, rng):
        points, ratio = -rng.uniform(0.0, 8e-3, (count, 3)), fixed or 380.0
        turned = np.cross(self.r, self.dv)[rows]
        columns = np.cross(self.edges[rows].transpose(0, 2, 1), self.dv[rows][:, None]).transpose(0, 2, 1)
        for _ in range(ROUNDS):
            rotation, height = self.misfit(points, ratio)
            cost = np.hypot(rotation, HEIGHT * height)[rows]
            chosen = cost.argmin(axis=1)
            # Unknowns: m/I, and m/I times each point, so that all is linear; the heights take m/I of the last round.
            design = np.zeros((len(rows), 4, 1 + 3 * count))
            design[:, :3, 0] = turned
            for k in range(count):
                own = chosen == k
                design[own, :3, 1 + 3 * k:4 + 3 * k] = columns[own]
                design[own, 3, 1 + 3 * k:4 + 3 * k] = HEIGHT * self.edges[rows][own, 2] / ratio
            target = np.concatenate([self.dw[rows], HEIGHT * self.depth[rows][:, None]], axis=1)
            if fixed:
                target, design = target - fixed * design[:, :, 0], design[:, :, 1:]
            weight = np.sqrt(1.0 / np.maximum(cost.min(axis=1), 0.05))
            answer = np.linalg.lstsq((design * weight[:, None, None]).reshape(-1, design.shape[2]),
                                     (target * weight[:, None]).ravel(), rcond=None)[0]
            if not fixed:
                ratio, answer = answer[0], answer[1:]
            points = answer.reshape(count, 3) / ratio
        rotation, height = self.misfit(points, ratio)
        return np.hypot(rotation, HEIGHT * height)[rows].min(axis=1).sum(), ratio, points


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--side", type=float, default=0.1048)
    parser.add_argument("--rate", type=float, default=148.0)
    args = parser.parse_args()
    tosses = load_tosses(args.file)
    centre = centre_of_mass(tosses, args.side, args.rate)
    print("centre of mass [mm]", np.round(1e3 * centre.centre, 2), "+-", np.round(1e3 * centre.error, 2),
          f"from {centre.flights} flights")
    impacts = Impacts(corner_impacts(tosses, args.side, args.rate))
    size = np.median(np.linalg.norm(impacts.dw, axis=1))
    print("| points | m/I, two halves [1/m^2] | unseen rotation unexplained | points, all tosses [mm] |")
    print("|---|---|---|---|")
    for count in (1, 2, 3, 4):
        for fixed in (None, 456.8):
            left, ratios = [], []
            for half in (0, 1):
                _, ratio, points = impacts.fit(np.flatnonzero(impacts.toss % 2 == half), count, fixed)
                left.append(impacts.misfit(points, ratio)[0].min(axis=1)[impacts.toss % 2 != half])
                ratios.append(ratio)
            _, _, points = impacts.fit(np.arange(len(impacts.r)), count, fixed)
            share = 100 * np.median(np.concatenate(left)) / size
            print(f"| {count} | {ratios[0]:.0f}, {ratios[1]:.0f} | {share:.1f} % "
                  f"| {np.round(1e3 * points, 1).tolist()} |")


if __name__ == "__main__":
    main()
