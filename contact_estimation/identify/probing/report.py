"""Text and HTML of probing results."""

from __future__ import annotations

from pathlib import Path

from contact_estimation.viz.html import Page

#: Columns of tables: (heading, key of the score).
COLUMNS = (
    ("converged [%]", "converged_pct"),
    ("at the end [%]", "converged_at_end_pct"),
    ("non-physical", "non_physical_runs"),
    ("tip [mm]", "tip_error_mm"),
    ("orientation [rad]", "orientation_error_rad"),
    ("stiffness [N/m]", "stiffness_error"),
    ("friction", "friction_error"),
    ("NEES", "nees_mean"),
    ("updates/s", "updates_per_second"),
)


def summary(result: dict) -> str:
    """The scores for people."""
    low, high = result["nees_interval"]
    return (
        f"{result['example']}: {result['runs']} runs, scored {result['evaluated_at_s']:.2f} s after contact\n"
        f"  converged       {result['converged_pct']:.0f} % (at the end {result['converged_at_end_pct']:.0f} %), "
        f"non-physical {result['non_physical_runs']}\n"
        f"  median errors   tip {result['tip_error_mm']:.2f} mm, "
        f"orientation {result['orientation_error_rad']:.4f} rad, "
        f"stiffness {result['stiffness_error']:.0f} N/m, friction {result['friction_error']:.4f}\n"
        f"  settled after   {result['settling_time_s']:.2f} s (median)\n"
        f"  NEES            {result['nees_mean']:.2f} for {result['nees_dof']} degrees of freedom "
        f"(honest: {low:.2f} to {high:.2f}), {result['nees_covered_pct']:.0f} % of runs below the 95 % bound\n"
        f"  NEES over time  "
        + ", ".join(f"{second} s {nees:.1f}" for second, nees in result["nees_over_time"].items())
        + "\n"
        f"  speed           {result['updates_per_second']:.0f} full updates per second"
    )


def table(results: dict[str, dict]) -> str:
    """Markdown table of named scores."""
    lines = ["| | " + " | ".join(heading for heading, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, result in results.items():
        lines.append(
            f"| {name} | "
            + " | ".join(f"{result[key]:.3g}" if abs(result[key]) < 1e4 else f"{result[key]:.1e}" for _, key in COLUMNS)
            + " |"
        )
    return "\n".join(lines)


def write_figures(figures: dict, folder: Path) -> list[Path]:
    """Save figures as ``<folder>/<name>.png``; returns the paths."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, fig in figures.items():
        paths.append(folder / f"{name}.png")
        fig.savefig(paths[-1])
        plt.close(fig)
    return paths


def page(results: dict[str, dict], figures: dict, command: str) -> Page:
    """HTML report: scores and figures."""
    out = Page("Probing", "Contact geometry and dynamics identified together, online (paper 4).")
    out.code(command)
    out.table(
        ["", *(heading for heading, _ in COLUMNS)],
        [[name, *(r[key] for _, key in COLUMNS)] for name, r in results.items()],
    )
    for name, fig in figures.items():
        out.figure(fig, name)
    return out
