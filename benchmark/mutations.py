"""Break the code on purpose and see which tests notice.

Every mutation changes one place of the package in a copy of the source tree, and runs the tests that should fail. A
mutation that survives is a promise that no test holds. `make torture` runs all of them.

    python benchmark/mutations.py --save benchmark/mutations.md
    python benchmark/mutations.py --only deadman

A table that exists keeps the rows of mutations that were not run again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from mutants import MORE
from report import kept_rows

ROOT = Path(__file__).resolve().parents[1]
#: [s] A mutant that hangs is noticed too.
PATIENCE = 300.0
#: First line of the saved table.
MADE_BY = "`python benchmark/mutations.py --save benchmark/mutations.md`; rows that were not run again stay."


class Mutation(NamedTuple):
    """One change that must be noticed.

    Attributes:
        name: what is broken.
        file: below the package.
        old: text that stands there exactly once.
        new: what replaces it.
        tests: what should fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


STREAM = "filters/stream.py"
SAFETY, GATE = "control/safety.py", "ros/command_gate.py"
CLOCK, RULE, RTDE = "drivers/clock.py", "ros/staleness.py", "drivers/rtde.py"
MUTATIONS = [
    Mutation(
        "stream: the last position is not updated",
        STREAM,
        '        self._remember()\n        return self._accept(stamp_ns, "")',
        '        return self._accept(stamp_ns, "")',
        "test/filters/test_stream.py test/filters/test_stream_gaps.py",
    ),
    Mutation(
        "limits: a torque beyond the limit passes",
        "filters/sample_limits.py",
        '("max_torque", sensors.max_torque, arm.effort_limit)',
        '("max_torque", 10 * sensors.max_torque, arm.effort_limit)',
        "test/filters/test_stream.py test/filters/test_stream_gaps.py",
    ),
    Mutation(
        "stream: gaps are bridged",
        STREAM,
        "if dt > self.sensors.max_gap:",
        "if False:",
        "test/filters/test_stream_gaps.py",
    ),
    Mutation("stream: duplicates are used", STREAM, "if dt_ns == 0:", "if False:", "test/filters/test_stream.py"),
    Mutation(
        "stream: implausible signals stay valid",
        STREAM,
        "self.reason = self._problem or reason",
        "self.reason = reason",
        "test/filters/plausibility test/filters/test_stream.py",
    ),
    Mutation(
        "safety: the time step has no cap",
        SAFETY,
        "dt = min(max(now - self._last, 0.0), self.settings.hold_after)",
        "dt = max(now - self._last, 0.0)",
        "test/control/test_safety.py",
    ),
    Mutation(
        "safety: the turn is limited in the wrong frame",
        SAFETY,
        "rotation = old @ pin.exp3(shorter)",
        "rotation = pin.exp3(shorter) @ old",
        "test/control/test_safety.py",
    ),
    Mutation("deadman: never stops", SAFETY, "age > self.settings.stop_after", "False", "test/control/test_safety.py"),
    Mutation(
        "deadman: never holds",
        SAFETY,
        "return SafetyState.HOLD if age > self.settings.hold_after",
        "return SafetyState.HOLD if False",
        "test/control/test_safety.py",
    ),
    Mutation(
        "deadman: counts arrivals instead of age",
        GATE,
        "self._filter.deadman.fresh(self._clock() - max(age, 0.0))",
        "self._filter.deadman.fresh(self._clock())",
        "test/ros/test_command_gate.py",
    ),
    Mutation(
        "gate: activates on stale samples",
        GATE,
        "if self._sample is None or now - self._sampled > self._filter.settings.hold_after:\n            raise",
        "if self._sample is None:\n            raise",
        "test/ros/test_command_gate.py",
    ),
    Mutation(
        "gate: commands on stale samples",
        GATE,
        "if self._sample is None or now - self._sampled > self._filter.settings.hold_after:\n            self._fail",
        "if self._sample is None:\n            self._fail",
        "test/ros/test_command_gate.py",
    ),
    Mutation(
        "rule: any age counts",
        RULE,
        "if not problem and not abs(age) <= limit:",
        "if False:",
        "test/ros/test_staleness.py",
    ),
    Mutation(
        "rule: any observer counts",
        RULE,
        "if not problem and self.observer and observer != self.observer:",
        "if False:",
        "test/ros/test_staleness.py",
    ),
    Mutation(
        "clock: no drift",
        CLOCK,
        "self.drift = float(np.clip(slope",
        "self.drift = 0 * float(np.clip(slope",
        "test/drivers/test_clock.py",
    ),
    Mutation(
        "clock: steps of the wall clock are slewed",
        CLOCK,
        "if abs(wall - self._wall) > jump_ns:",
        "if False:",
        "test/drivers/test_clock.py",
    ),
    Mutation(
        "clock: one late sample is a jump",
        CLOCK,
        "len(self._late) == self._late.maxlen",
        "len(self._late) >= 1",
        "test/drivers/test_clock.py",
    ),
    Mutation(
        "clock: pauses are not followed",
        CLOCK,
        "            self._late.append(delay)\n",
        "            pass\n",
        "test/drivers/test_clock.py",
    ),
    Mutation(
        "rtde: any stamp passes",
        RTDE,
        "if not 0.0 <= stamp < MAX_STAMP:",
        "if False:",
        "test/drivers/test_rtde.py -k stamp",
    ),
    Mutation(
        "rtde: what waited too long is used",
        RTDE,
        "if 0 < self.settings.max_backlog < waited:",
        "if False:",
        "test/drivers/test_rtde_reading.py -k behind",
    ),
    Mutation(
        "joint torque: a repeated stamp is used",
        "drivers/joint_torque.py",
        "if last is not None and stamp_ns == last:",
        "if False:",
        "test/drivers/test_joint_torque.py",
    ),
    Mutation(
        "cache: damaged code is loaded",
        "codegen/cache.py",
        "whole = bytes(content[-_DIGEST_SIZE:]) == _digest(content[:-_DIGEST_SIZE])",
        "whole = True",
        "test/codegen/test_cache.py -k flipped",
    ),
    Mutation(
        "cache: links are followed",
        "codegen/cache.py",
        "os.O_RDONLY | os.O_NOFOLLOW",
        "os.O_RDONLY",
        "test/codegen/test_cache.py -k link",
    ),
    Mutation(
        "settings: the last of two equal keys counts",
        "settings.py",
        "if key_node.value in seen:",
        "if False:",
        "test/test_settings.py",
    ),
    Mutation(
        "recovery: half a chunk counts as whole",
        "io/recovery.py",
        "if head[0] not in _DATA_OPCODES or end > total:",
        "if head[0] not in _DATA_OPCODES:",
        "test/io/test_recovery.py",
    ),
    Mutation(
        "npz: zip bombs are unpacked",
        "io/npz.py",
        "if size > memory // 2:",
        "if False:",
        "test/io/test_damage.py -k memory",
    ),
    Mutation(
        "open: pipes are read",
        "io/open.py",
        "if not (part.is_file() or part.is_dir()):",
        "if False:",
        "test/io/test_damage.py -k pipes",
    ),
    Mutation(
        "lifecycle: a wrong request ends the node",
        "ros/lifecycle.py",
        "except rclpy_implementation.RCLError:",
        "except ZeroDivisionError:",
        "test/ros/test_lifecycle.py",
    ),
    Mutation(
        "pacer: a slow source falls behind",
        "ros/pacer.py",
        "if wait < -self._max_late:",
        "if False:",
        "test/ros/test_pacer.py",
    ),
    Mutation(
        "parameters: what cannot change is accepted",
        "ros/parameters.py",
        "fixed = sorted(set(changed) - live)",
        "fixed: list[str] = []",
        "test/ros/test_parameters.py",
    ),
]
MUTATIONS += [Mutation(*change[:1], file, *change[1:], tests) for (file, tests), few in MORE.items() for change in few]


def survives(mutation: Mutation, tree: Path) -> bool:
    """Apply a mutation in a copy of the source tree, and return whether every test passes all the same.

    Raises:
        ValueError: the text to be changed does not stand in the file exactly once.
    """
    file = tree / "contact_estimation" / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.name}: its text stands {text.count(mutation.old)} times in {mutation.file}")
    file.write_text(text.replace(mutation.old, mutation.new))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation.tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(text)
    if done.returncode not in (0, 1) or not done.stdout:  # without pytest nothing is said
        raise ValueError(f"{mutation.name}: the tests do not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> None:
    """Run the mutations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutations whose name holds this")
    parser.add_argument("--save", type=Path, help="write the table here")
    args = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if args.only in mutation.name]
    there_are = {mutation.name for mutation in MUTATIONS}
    rows = {name: row for (name,), row in kept_rows(args.save, 0).items() if name in there_are}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "build", "out", "install", "log")
        shutil.copytree(ROOT, tree, ignore=ignored, symlinks=True)
        for mutation in chosen:
            noticed = "**no**" if survives(mutation, tree) else "yes"
            rows[mutation.name] = f"| {mutation.name} | `{mutation.tests}` | {noticed} |"
            print(rows[mutation.name], flush=True)
    killed = sum(row.endswith("| yes |") for row in rows.values())
    verdict = f"{killed} of {len(rows)} mutations noticed."
    print(verdict)
    if args.save:
        header = ["| mutation | tests | noticed |", "|---|---|---|"]
        args.save.write_text("\n".join(["# Mutations", "", MADE_BY, "", *header, *rows.values(), "", verdict]) + "\n")
    sys.exit(killed < 0.9 * len(rows))


if __name__ == "__main__":
    main()
