"""Lemke's method of `identify planar` beside Drake's two LCP solvers, on the problems of simulated drops.

    python benchmark/lcp_oracle.py [--drops 20] [--save benchmark/lcp_oracle.md]

Needs `pip install drake`. Contact problems may have several solutions; all of them move the contacts alike. Compared
are therefore M z + q of the force rows, and how far each solver's z is from complementarity.
"""

from __future__ import annotations

import argparse

import numpy as np
from pydrake.solvers import MathematicalProgram, MobyLcpSolver, UnrevisedLemkeSolver
from report import add_save_argument, heading, publish

from contact_estimation.identify.planar import stepping
from contact_estimation.identify.planar.lcp import LcpSolution, solve_lcp
from contact_estimation.identify.planar.shapes import Ellipse, rimless_wheel, square

BODIES = ((square(1.0), 6.0), (Ellipse(2.0, 1.0), 0.8), (rimless_wheel(6, 0.3), 20.0))  # outline, m/I [1/m^2]


def problems(drops: int) -> list[tuple[np.ndarray, np.ndarray, LcpSolution]]:
    """Collect matrix, vector and our solution of every contact problem in random drops of three bodies."""
    seen, rng = [], np.random.default_rng(0)

    def solve(matrix, vector):
        solution = solve_lcp(matrix, vector)
        seen.append((matrix.copy(), vector.copy(), solution))
        return solution

    stepping.solve_lcp = solve
    for shape, ratio in BODIES:
        for _ in range(drops):
            start = [0.0, 2.3, rng.uniform(-3.0, 3.0)], [rng.uniform(-2.0, 2.0), 0.0, rng.uniform(-5.0, 5.0)]
            stepping.simulate(stepping.FallingBody(shape, ratio), *start, 0.01, 150)
    return seen


def solve_with(solver, matrix: np.ndarray, vector: np.ndarray) -> np.ndarray | None:
    """Solve with one of Drake's solvers; None where it says that it failed."""
    program = MathematicalProgram()
    z = program.NewContinuousVariables(len(vector))
    program.AddLinearComplementarityConstraint(matrix, vector, z)
    result = solver.Solve(program)
    return result.GetSolution(z) if result.is_success() else None


def error(matrix: np.ndarray, vector: np.ndarray, z: np.ndarray) -> float:
    """Largest violation of z >= 0, M z + q >= 0 and z (M z + q) = 0."""
    return LcpSolution(z, matrix @ z + vector, True).error


def main() -> None:
    """Compare, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drops", type=int, default=20, help="of each body (default %(default)s)")
    add_save_argument(parser)
    args = parser.parse_args()
    found = problems(args.drops)
    lines = heading("LCP solvers on contact problems")
    lines += ["| solver | problems | solved | largest violation | largest difference of contact velocities [m/s] |"]
    lines += ["|---|---|---|---|---|"]
    own = [solution.error for *_, solution in found]
    lines.append(f"| solve_lcp | {len(found)} | {sum(s.solved for *_, s in found)} | {max(own):.1e} | - |")
    for name, solver in (("Drake, Moby", MobyLcpSolver()), ("Drake, unrevised Lemke", UnrevisedLemkeSolver())):
        answers = [(m, q, s, solve_with(solver, m, q)) for m, q, s in found]
        solved = [(m, q, s, z) for m, q, s, z in answers if z is not None]
        worst = max(error(m, q, z) for m, q, _, z in solved)
        apart = max(float(np.max(np.abs(m @ (z - s.z))[: 3 * len(q) // 4])) for m, q, s, z in solved)
        lines.append(f"| {name} | {len(found)} | {len(solved)} | {worst:.1e} | {apart:.1e} |")
    publish(lines, args.save)


if __name__ == "__main__":
    main()
