"""Cross-validated calibration of a UR10e and a Panda on their identification recordings.

    python benchmark/calibration.py [--shared DIR]

UR10e: the free Fourier excitations of February 2020 (ten logs of 27 to 58 s, motor current times the controller's own
Nm/A), every log predicted by a calibration on the others; the logs with a load give the payload. Panda: each half of
the excitation predicts the other. Prints RMS torque errors, rigid model -> calibrated.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from contact_estimation.commands.output import text_table
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.outcome import calibration
from contact_estimation.fit.calibration.validation import cross_validate, shrinkage
from contact_estimation.io.npz import read_npz
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm

FREE = (
    "identification_data__ur-20_02_05-20sec_12harm",
    "identification_data__ur-20_02_05-20sec_8harm",
    "identification_data__ur-20_02_06-20sec_10harm",
    "identification_data__ur-20_02_06-20sec_5harm",
    "identification_data__ur-20_02_10-20sec_7harm",
    "identification_data__ur-20_02_10-30sec_12harm",
    "identification_data__ur-20_02_12-40sec_12harm",
    "identification_data__ur-20_02_12-50sec_12harm",
    "identification_data__ur-20_02_19_14harm50sec",
    "identification_data__ur-20_02_19_15harm50sec",
)
LOADED = tuple(
    f"identification_data__ur-{name}"
    for name in ("20_01_31-unload", "20_01_31-load", "20_02_19_14harm50sec", "20_02_19_14harm50secLoad")
)


def ur10e_log(archive, arm, name: str) -> Recording:
    """One log; its columns are t, q, dq, actual current, target current, target torque."""
    rows = archive[name]
    return Recording(
        np.round(rows[:, 0] * 1e9).astype(np.int64),
        arm.joint_names,
        rows[:, 1:7],
        rows[:, 7:13],
        arm.motor.torque_from_current(rows[:, 13:19]),
        name,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    args = parser.parse_args()
    arm = load_arm("ur10e")
    archive = np.load(args.shared / "data/ur10e_identification/ur10e_logs.npz")
    free = [ur10e_log(archive, arm, name) for name in FREE]
    for label, options in (
        ("friction alone", []),
        ("default", None),
        ("with link inertias", ["armature", "asymmetry", "links"]),
    ):
        settings = CalibrationSettings() if options is None else CalibrationSettings(identify=options)
        found = identify(arm, free, settings)
        report(f"UR10e, {label}", arm, found, settings)
    for name in LOADED:
        payload = calibration(arm, identify(arm, [ur10e_log(archive, arm, name)]), CalibrationSettings()).payload
        load = f"{payload.mass:.2f} +- {payload.mass_std:.2f} kg at {np.round(payload.com, 3)} m"
        print(f"UR10e {name.split('__ur-')[1]}: payload {load}")
    panda = load_arm("panda")
    recording = read_npz(args.shared / "data/panda_excitation/panda_excitation.npz", panda.joint_names)
    report("Panda, default", panda, identify(panda, [recording]), CalibrationSettings())


def report(title, arm, found, settings) -> None:
    predictions = cross_validate(arm, found.designs, settings)
    rigid, calibrated = (
        np.sqrt(np.mean([getattr(p, name) ** 2 for p in predictions], axis=0)) for name in ("rigid", "calibrated")
    )
    print(f"\n{title}: torque of recordings left out, RMS [Nm] over {len(predictions)}")
    print(
        text_table(
            ["joint", "rigid", "calibrated", "ratio"],
            [
                [name, rigid[j], calibrated[j], ratio]
                for j, (name, ratio) in enumerate(zip(arm.joint_names, shrinkage(predictions)))
            ],
        )
    )


if __name__ == "__main__":
    main()
