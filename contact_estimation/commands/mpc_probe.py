"""``contact-estimation mpc probe``: an arm explores a simulated surface, then the MPC presses with the result."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np

from contact_estimation.commands.inputs import executor_of
from contact_estimation.commands.output import Progress, command_line, emit
from contact_estimation.jobs import gather
from contact_estimation.settings import replace
from contact_estimation.studies.mpc.probe_press import (
    Explored,
    PressRecord,
    ProbePressSettings,
    load_probe_settings,
    probe_and_press,
)
from contact_estimation.studies.mpc.probe_report import probe_report
from contact_estimation.studies.probing.score import errors_text, named_errors


def run(args: argparse.Namespace) -> int:
    """Run ``args.runs`` surfaces with the probed and with the guessed contact and print what was measured."""
    settings = load_probe_settings(args.robot or "ur16e")
    changes = {name: getattr(args, name) for name in ("force", "duration") if getattr(args, name) is not None}
    settings = replace(settings, "options", **changes)
    function = functools.partial(probe_and_press, settings)
    runs = executor_of(args, args.runs).run(function, range(args.seed, args.seed + args.runs))
    with Progress(args.runs, "surfaces") as progress:
        explored, probed, guessed = map(list, zip(*gather(runs, progress.update)))
    result = summarise(settings, args.seed, explored, probed, guessed)
    lines = [
        f"probe on {settings.robot}, sensor: {settings.sensing}, seeds {args.seed} to {args.seed + args.runs - 1}",
        f"explored                {result['reached_pct']:.0f} % reached every target, "
        f"median {result['seconds']:.1f} s, largest force {result['max_force']:.0f} N",
        f"NIS per component       {result['nis_per_component']:.2f} (1), {result['restarts']} filters restarted",
        f"median errors           {errors_text(result)}",
        f"force RMSE after 1 s    {result['force_rmse_probed']:.2f} N probed "
        f"(worst {result['force_rmse_probed_max']:.2f} N), {result['force_rmse_guessed']:.1f} N with the guess; "
        f"wanted {settings.force:g} N",
        f"ticks without a plan    {result['ticks_without_plan']}",
    ]
    if args.report:
        page = probe_report(args.report, command_line(args), settings, explored, probed, guessed)
        lines.append(f"report                  {page}")
    emit(args, result, "\n".join(lines))
    return 0


def summarise(
    settings: ProbePressSettings,
    seed: int,
    explored: list[Explored],
    probed: list[PressRecord],
    guessed: list[PressRecord],
) -> dict[str, Any]:
    """Return medians over the surfaces: exploration, errors of the parameters, force errors under MPC."""
    rmse = [record.force_rmse() for record in probed]
    return {
        "robot": settings.robot,
        "sensing": settings.sensing,
        "runs": len(explored),
        "seed": seed,
        "reached_pct": 100.0 * float(np.mean([found.exploration.reached for found in explored])),
        "seconds": float(np.median([found.exploration.seconds for found in explored])),
        "strokes": float(np.median([len(found.exploration.strokes) for found in explored])),
        "restarts": sum(found.exploration.restarts for found in explored),
        "nis_per_component": float(np.nanmean([e.nis / e.nis_dof for f in explored for e in f.exploration.history])),
        "max_force": float(np.max([found.max_force for found in explored])),
        **named_errors(np.median([found.errors for found in explored], axis=0)),
        "force_rmse_probed": float(np.median(rmse)),
        "force_rmse_probed_max": float(np.max(rmse)),
        "force_rmse_guessed": float(np.median([record.force_rmse() for record in guessed])),
        "ticks_without_plan": sum(len(record.reasons) for record in probed + guessed),
    }
