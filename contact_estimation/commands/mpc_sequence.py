"""``contact-estimation mpc sequence``: a task in steps on a simulated arm, with the estimator between."""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from contact_estimation.commands.output import emit
from contact_estimation.control.sequence import SequenceController
from contact_estimation.exceptions import ConfigError
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, LoopSettings


def run(args: argparse.Namespace, settings: LoopSettings) -> int:
    """Run the steps once and print how each ended."""
    foreign = {"--solver": args.solver != "rti", "--controller": args.controller != "mpc", "--force": args.force}
    given = [name for name, value in foreign.items() if value] + (["--report"] if args.report else [])
    if given:
        raise ConfigError(f"mpc sequence takes no {', '.join(given)}: its steps say that")
    settings = dataclasses.replace(settings, sequence=args.steps or settings.sequence)
    options = LoopOptions(
        seed=args.seed, height_error=args.height_error, stiffness=args.stiffness, observer=args.observer, tool=args.tool
    )
    loop = ClosedLoop(settings, options)
    record, controller = loop.run(args.duration), loop.controller
    assert isinstance(controller, SequenceController), "the loop has a sequence"
    planned = [step.name for step in controller.sequence.steps]
    done = [name for name, _ in controller.ended]
    peak = float(np.linalg.norm(record.force, axis=1).max())
    result = {
        "steps": [{"step": name, "end": why} for name, why in controller.ended],
        "completed": done == planned,
        "seconds": float(record.t[-1]),
        "peak_force": peak,
        "max_impedance_force": record.max_spring,
        "force_limit": record.force_limit,
    }
    lines = [f"{name:24s} {why}" for name, why in controller.ended]
    skipped = [name for name in planned if name not in done]
    lines.append(f"{len(done)} of {len(planned)} steps in {record.t[-1]:.1f} s, peak force {peak:.1f} N")
    if skipped:
        lines.append(f"not done: {', '.join(skipped)}")
    emit(args, result, "\n".join(lines))
    return 0
