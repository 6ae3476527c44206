#!/usr/bin/env python3
"""Damaged files and full disks, given to every verb of the command line: each must end in a named error.

    python benchmark/hostile_files.py [--verb replay] [--file "bag cut"] [--show] [--save]

Every command line runs in a process of its own, with a limit of its processor time. It passes when it ends by itself,
prints no traceback, and either reports an error (exit code 2, a message that names the program) or, where the damage
leaves a readable file, succeeds or says by a verdict that the data do not fit. A full disk is a limit on the size of
files, and the device ``/dev/full``. ``--save`` keeps the rows of verbs that were not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import pkgutil
import resource
import shutil
import signal
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from report import kept_rows
from rigid_body_recording import RigidBodyArm, World, pushes, random_motion, record
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

import contact_estimation
from contact_estimation import load_arm
from contact_estimation.cli import main as command_line
from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.identify.verdict import EXIT_FAILED
from contact_estimation.io.bag_writer import STORAGE, write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.io.recording import Recording
from contact_estimation.io.topics import JOINT_STATE, JOINT_STATES_TOPIC, WRENCH, WRENCH_TOPIC

#: [s] of processor time for one command line; one that waits for something hangs after five times as long.
LIMIT = 20.0
DISK = 2048  # [byte] that a full disk still takes
#: First line of the saved table.
MADE_BY = "`python benchmark/hostile_files.py --save`; rows of verbs that were not run again stay."

#: Verbs that read a recording: words, with {file} the recording and {out} a new file or folder.
RECORDING_VERBS = {
    "replay": "replay {file} --robot ur16e --observer momentum",
    "compare": "compare {file} --robot ur16e --observers momentum,ekf",
    "convert": "convert {file} {out}.npz",
    "convert to a bag": "convert {file} {out}",
    "fit": "fit {file} --robot ur16e --out {out}.yaml --passes 1",
    "calibrate": "calibrate {file} --robot ur16e --no-validation --out {out}.yaml",
    "tune": "tune {file} --robot ur16e --evaluations 1 --out {out}.yaml",
    "view": "view {file} --robot ur16e --observer momentum --out {out}.html",
    "observability": "observability {file} --robot ur16e",
    "identify batch": "identify batch {file} --model ur16e_press --window 0 0.2",
    "identify probing": "identify probing --recording {file}",
    "identify planar impacts": "identify planar --impacts {file}",
    "identify planar tosses": "identify planar --tosses {file}",
    "identify planar drop": "identify planar --drop {file} --shape square:0.1 --friction 0.2",
}
#: Verbs that read a configuration: {file} the YAML, {recording} a good recording.
YAML_VERBS = {
    "replay --config": "replay {recording} --robot ur16e --config {file}",
    "replay --sensors": "replay {recording} --robot ur16e --observer momentum --sensors {file}",
    "replay --robot": "replay {recording} --robot {file} --observer momentum",
    "fit --config": "fit {recording} --robot ur16e --config {file} --out {out}.yaml",
    "observability --config": "observability --posture 0 -1 1 0 0 0 --robot ur16e --config {file}",
    "tune --config": "tune {recording} --robot ur16e --config {file} --out {out}.yaml",
    "simulate": "simulate {file} --robot ur16e --seconds 0.1 --out {out}",
    "simulate --imperfections": "simulate linear_contact --seconds 0.1 --imperfections {file} --out {out}",
    "identify probing --settings": "identify probing --runs 1 --settings {file}",
    "identify batch --model": "identify batch {recording} --model {file}",
    "mpc --observer": "mpc press --duration 0.1 --observer {file}",
    "rtde-server --scenario": "rtde-server --seconds 0.1 --port 31004 --scenario {file}",
}
#: Verbs that write: {recording} a good recording, {out} where nothing can be written.
OUTPUT_VERBS = {
    "convert to .npz": "convert {recording} {out}",
    "convert to a bag": "convert {recording} {out}.bag --robot ur16e",
    "convert to sqlite3": "convert {recording} {out}.bag --robot ur16e --storage sqlite3",
    "replay --export": "replay {recording} --robot ur16e --observer momentum --export {out}",
    "replay --report": "replay {recording} --robot ur16e --observer momentum --report {out}.d",
    "compare --out": "compare {recording} --robot ur16e --observers momentum --out {out}",
    "calibrate --out": "calibrate {recording} --robot ur16e --no-validation --out {out}.yaml",
    "calibrate --out folder": "calibrate {recording} --robot ur16e --no-validation --out {out}.d",
    "tune --out": "tune {recording} --robot ur16e --evaluations 1 --out {out}",
    "view --out": "view {recording} --robot ur16e --observer momentum --out {out}",
    "simulate --out": "simulate linear_contact --seconds 0.2 --out {out}.bag",
    "identify planar --figure": "identify planar --example wheel --figure {out}.png",
    "identify probing --report": "identify probing --runs 1 --report {out}.html",
    "identify probing --figures": "identify probing --runs 1 --figures {out}.d",
}


class Verdict(NamedTuple):
    """What a command line did.

    Attributes:
        kind: "error", "done", "TRACEBACK", "HANG", "SILENT" (it fails and says nothing) or the name of a signal.
        said: last line it printed to stderr.
    """

    kind: str
    said: str


def good_recording() -> Recording:
    """Make one second of a UR16e in motion."""
    arm, t = RigidBodyArm("ur16e"), np.arange(500) / 500
    theta = random_motion("ur16e", t, np.random.default_rng(0), 0.2, 2.0)
    made = record(arm, theta, pushes(arm, [], t), World())
    return Recording(made.stamps, load_arm("ur16e").joint_names, made.q, made.dq, made.tau, "good recording")


def archives(folder: Path, recording: Recording) -> Iterator[tuple[str, Path]]:
    """Yield damaged ``.npz`` archives."""
    good = write_npz(folder / "good.npz", recording)
    with np.load(good) as data:
        arrays = dict(data)
    count, n = arrays["q"].shape
    changes = {
        "structured q": {"q": np.zeros(count, dtype=[("a", float), ("b", int)])},
        "words for q": {"q": np.full((count, n), "x")},
        "complex q": {"q": np.zeros((count, n), complex)},
        "q of no axis": {"q": np.float64(1.0)},
        "empty q": {"q": np.zeros((0, n))},
        "one sample": {name: value[:1] if value.ndim == 2 else value for name, value in arrays.items()},
        "q of 3 joints": {"q": arrays["q"][:, :3]},
        "q not finite": {"q": arrays["q"] * np.nan},
        "q of 1e300": {"q": arrays["q"] * 1e300},
        "stamps not finite": {"stamps_ns": np.full(count, np.nan)},
        "stamps all equal": {"stamps_ns": np.zeros(count, int)},
        "stamps backwards": {"stamps_ns": arrays["stamps_ns"][::-1].copy()},
        "stamps in float seconds": {"stamps_ns": arrays["t"]},
        "t in nanoseconds": {"t": arrays["stamps_ns"]},
        "t in float32 since 1970": {"t": (1.7e9 + arrays["t"]).astype(np.float32)},
        "stamps twice": {name: np.repeat(value, 2, axis=0) for name, value in arrays.items() if len(value) == count},
        "wrench not finite": {"f_tcp": np.full((count, 3), np.nan)},
        "wrench zero not finite": {"f_tcp": np.zeros((count, 3)), "f_tcp_zero_offset": np.full(3, np.nan)},
        "one name too many": {"joint_names": np.append(arrays["joint_names"], "gripper")},
        "names as bytes": {"joint_names": arrays["joint_names"].astype("S")},
        "robot unknown": {"robot": np.array("../../etc/passwd")},
        "names as numbers": {"joint_names": np.arange(n)},
        "names nested": {"joint_names": np.full((n, 2), "a")},
        "sensor set unknown": {"sensors": np.array("../../etc/passwd")},
    }
    for name, change in changes.items():
        left = {key: value for key, value in arrays.items() if key != "stamps_ns" or "t" not in change}
        np.savez(folder / f"{name}.npz", **left | change)
        yield f"archive: {name}", folder / f"{name}.npz"
    np.savez(folder / "objects.npz", **arrays | {"q": np.array([{}, []], dtype=object)}, allow_pickle=True)
    yield "archive: pickled objects", folder / "objects.npz"
    content = good.read_bytes()
    raw = {
        "no byte": b"",
        "cut": content[: len(content) // 2],
        "text": b"t,q0,q1\n0,1,2\n",
        "first bytes only": content[:2],
        "noise behind the magic": content[:4] + np.random.default_rng(1).bytes(4000),
    }
    for name, data in raw.items():
        (folder / f"{name}.npz").write_bytes(data)
        yield f"archive: {name}", folder / f"{name}.npz"
    yield "archive: declared huge", _members(good, folder / "huge.npz", _declare_huge)
    yield "archive: members cut", _members(good, folder / "members.npz", lambda member: member[: len(member) // 2])
    yield "archive: other members", _members(good, folder / "other.npz", lambda member: b"\x89PNG")


def _declare_huge(member: bytes) -> bytes:
    """Claim 10^11 rows in the header of an array, at the same length."""
    start, end = member.index(b"(") + 1, member.index(b",", member.index(b"("))
    padding = 12 - (end - start)
    header = member[:start] + b"9" * 12 + member[end:]
    return header.replace(b" " * padding + b"\n", b"\n", 1)


def _members(source: Path, target: Path, change: Callable[[bytes], bytes]) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)))
    return target


def bags(folder: Path, recording: Recording) -> Iterator[tuple[str, Path]]:
    """Yield damaged bags of both storages."""
    rng = np.random.default_rng(2)
    for storage, suffix in (("mcap", ".mcap"), ("sqlite3", ".db3")):

        def fresh(name: str, storage: str = storage, suffix: str = suffix) -> tuple[Path, Path]:
            bag = write_bag(folder / f"{storage} {name}", recording, storage)
            return bag, next(p for p in bag.iterdir() if p.suffix == suffix)

        for share in (0.0, 0.01, 0.5, 0.99):
            bag, file = fresh(f"cut at {share:g}")
            os.truncate(file, int(share * file.stat().st_size))
            yield f"{storage}: cut at {share:g}", bag
            yield f"{storage}: bare file cut at {share:g}", file
        bag, file = fresh("flipped")
        content = bytearray(file.read_bytes())
        for place in rng.integers(len(content), size=200):
            content[place] ^= 0x5A
        file.write_bytes(content)
        yield f"{storage}: flipped bytes", bag
        bag, file = fresh("without metadata")
        (bag / "metadata.yaml").unlink()
        yield f"{storage}: no metadata", bag
        for name, text in {"empty": "", "list": "[1, 2]", "deep": "[" * 5000, "latin": "\xe9: 1"}.items():
            bag, file = fresh(f"metadata {name}")
            (bag / "metadata.yaml").write_bytes(text.encode("latin-1"))
            yield f"{storage}: metadata {name}", bag
        bag, file = fresh("two files and no metadata")
        (bag / "metadata.yaml").unlink()
        shutil.copy(file, file.with_stem("second"))
        yield f"{storage}: two files, no metadata", bag
        bag, file = fresh("journal left")
        file.with_name(f"{file.name}-wal").write_bytes(rng.bytes(5000))
        yield f"{storage}: a journal of noise beside it", bag
        yield f"{storage}: two arms on one topic", two_arms(folder / f"{storage} two arms", recording, storage)
        bag, file = fresh("file gone")
        file.unlink()
        yield f"{storage}: file gone", bag
        bag, file = fresh("pipe")
        file.unlink()
        os.mkfifo(file)
        yield f"{storage}: file is a pipe", bag


def two_arms(bag: Path, recording: Recording, storage: str) -> Path:
    """Write a bag whose messages of joint states come from two arms in turn, beside a wrench that said nothing."""
    store = get_typestore(Stores.ROS2_JAZZY)
    header, time = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    with Writer(bag, version=9, storage_plugin=STORAGE[storage]) as writer:
        writer.add_connection(WRENCH_TOPIC, WRENCH, typestore=store)
        states = writer.add_connection(JOINT_STATES_TOPIC, JOINT_STATE, typestore=store)
        for stamp, *row in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
            for arm in ("left_", "right_"):
                names = [arm + name for name in recording.joint_names]
                message = store.types[JOINT_STATE](header(time(*divmod(stamp, 10**9)), ""), names, *row)
                writer.write(states, stamp, store.serialize_cdr(message, JOINT_STATE))
    return bag


def places(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield paths that are no ordinary file."""
    (folder / "folder").mkdir()
    yield "path: empty folder", folder / "folder"
    (folder / "folder.npz").mkdir()
    yield "path: folder named .npz", folder / "folder.npz"
    (folder / "nowhere.npz").symlink_to(folder / "gone")
    yield "path: dangling link", folder / "nowhere.npz"
    (folder / "circle.npz").symlink_to(folder / "circle.npz")
    yield "path: link to itself", folder / "circle.npz"
    os.mkfifo(folder / "pipe.npz")
    yield "path: pipe", folder / "pipe.npz"
    yield "path: device", Path("/dev/zero")
    yield "path: too long a name", folder / ("x" * 300)
    yield "path: below a file", Path("/etc/hostname/x.npz")


def texts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield YAML files that no configuration can be read from, and the places that are none."""
    contents = {
        "empty": b"",
        "no mapping": b"[1, 2]",
        "not UTF-8": b"observer: \xe9\xff",
        "NUL bytes": b"observer: \x00",
        "binary": bytes(range(256)) * 8,
        "duplicate key": b"observer: ekf\nobserver: ekf\n",
        "duplicate key of lists": b"? [1]\n: 1\n? [1]\n: 2\n",
        "tag that does not fit": b'rate: !!int "abc"\n',
        "Python object": b"rate: !!python/object/apply:os.system ['true']\n",
        "deep lists": b"a: " + b"[" * 20000,
        "deep mappings": b"".join(b" " * k + b"a:\n" for k in range(3000)),
        "laughs": b"a: &a [1,1,1,1,1,1,1,1,1]\n"
        + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 108)),
        "its own member": b"a: &a [*a]\n",
        "1e308": b"observer: ekf\nrate: 1e308\n",
        "unclosed": b'observer: "ekf\n',
        "unknown key": b"obsrver: ekf\n",
        "key of another type": b"1: 2\nnull: 3\n",
        "words for numbers": b"observer: ekf\nmeasured: 17\n",
        "merge of itself": b"a: &a\n  <<: *a\n",
        "date": b"observer: 2001-01-01\n",
    }
    for name, content in contents.items():
        (folder / f"{name}.yaml").write_bytes(content)
        yield f"YAML: {name}", folder / f"{name}.yaml"
    (folder / "dir.yaml").mkdir()
    yield "YAML: folder", folder / "dir.yaml"
    os.mkfifo(folder / "pipe.yaml")
    yield "YAML: pipe", folder / "pipe.yaml"


def outputs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield places where nothing can be written; :func:`run` limits the size of files for the first one."""
    yield "output: full disk", folder / "full disk" / "out"
    yield "output: full device", Path("/dev/full")
    yield "output: below a file", Path("/etc/hostname/out")
    (folder / "taken").mkdir(exist_ok=True)
    yield "output: a folder", folder / "taken"


def cpu_seconds(pid: int) -> float:
    """Processor time [s] of a process that was not yet waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(words: list[str], stderr: Path, full: bool) -> None:
    """Run a command line with its output in files."""
    with stderr.open("wb") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if full:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (DISK, DISK))
    with contextlib.suppress(SystemExit):
        os._exit(command_line(words))
    os._exit(2)


def run(words: list[str], folder: Path, full: bool = False) -> Verdict:
    """Run a command line in a process of its own.

    Args:
        words: behind the program's name.
        folder: for what it prints.
        full: whether files stop growing at :data:`DISK` bytes.
    """
    stderr = folder / "stderr"
    process = multiprocessing.get_context("fork").Process(target=_child, args=(words, stderr, full))
    process.start()
    end = time.monotonic() + 5.0 * LIMIT
    while process.exitcode is None and time.monotonic() < end and cpu_seconds(process.pid) < LIMIT:
        process.join(0.2)
    if process.exitcode is None:
        process.kill()
        process.join()
        return Verdict("HANG", f"longer than {LIMIT:g} s of processor time, or {5.0 * LIMIT:g} s")
    text = stderr.read_text(errors="replace")
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    said = lines[-1] if lines else ""
    if "Traceback" in text:
        return Verdict("TRACEBACK", said)
    if process.exitcode < 0:
        return Verdict(signal.Signals(-process.exitcode).name, said)
    if process.exitcode in (0, EXIT_FAILED):
        return Verdict("done", said)
    named = any(line.startswith("contact-estimation") for line in lines)
    return Verdict("error" if named else "SILENT", said)


def command_lines(folder: Path) -> Iterator[tuple[str, str, list[str], bool]]:
    """Yield verb, name of the damage, words, and whether the disk is full."""
    recording = good_recording()
    damaged = [*archives(folder, recording), *bags(folder, recording), *places(folder)]
    good = folder / "good.npz"
    for verbs, files in ((RECORDING_VERBS, damaged), (YAML_VERBS, list(texts(folder)))):
        for verb, words in verbs.items():
            for k, (name, file) in enumerate(files):
                values = {"file": file, "recording": good, "out": folder / "outputs" / f"{len(verb)}_{verb}_{k}"}
                yield verb, name, [word.format(**values) for word in words.split()], False
    for verb, words in OUTPUT_VERBS.items():
        for name, place in outputs(folder):
            out = place.with_name(f"out_{verb}") if "full disk" in name else place
            yield verb, name, [word.format(recording=good, out=out) for word in words.split()], "full disk" in name


def load_everything() -> None:
    """Import the package before the processes fork, so that each of them starts at once."""
    for module in pkgutil.walk_packages(contact_estimation.__path__, "contact_estimation."):
        if not module.name.endswith("__main__") and module.name.split(".")[1] not in ("ros", "nodes", "msg", "srv"):
            with contextlib.suppress(ImportError, ContactEstimationError):
                importlib.import_module(module.name)


def main() -> int:
    """Run the command lines and print what does not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verb", action="append", help="only verbs that begin with this")
    parser.add_argument("--file", default="", help="only damages whose name has this in it")
    parser.add_argument("--show", action="store_true", help="print every command line's last words")
    parser.add_argument("--save", action="store_true", help="write hostile_files.md beside this file")
    args = parser.parse_args()
    load_everything()
    kinds: dict[str, Counter[str]] = {}
    failed = []
    with tempfile.TemporaryDirectory(prefix="hostile_") as name:
        folder = Path(name)
        for verb, damage, words, full in command_lines(folder):
            if args.file not in damage or not any(verb.startswith(v) for v in args.verb or [""]):
                continue
            verdict = run(words, folder, full)
            kinds.setdefault(verb, Counter())[verdict.kind] += 1
            if args.show or verdict.kind not in ("error", "done"):
                print(f"{verdict.kind:9} | {verb} | {damage} | {verdict.said[:150]}", flush=True)
            if verdict.kind not in ("error", "done"):
                failed.append(f"| {verdict.kind} | {verb} | {damage} | {verdict.said[:150]} |")
    table = Path(__file__).with_suffix(".md")
    verbs = {**RECORDING_VERBS, **YAML_VERBS, **OUTPUT_VERBS}
    kept = kept_rows(table, 0, 1, 2, 3) if args.save else {}
    rows = {verb: tuple(map(int, counts)) for verb, *counts in kept if verb in verbs}
    rows |= {verb: (k["error"], k["done"], k.total() - k["error"] - k["done"]) for verb, k in kinds.items()}
    lines = ["| verb | named errors | done | failed |", "|---|---|---|---|"]
    lines += [f"| {verb} | " + " | ".join(map(str, counts)) + " |" for verb, counts in rows.items()]
    total, bad = sum(map(sum, rows.values())), sum(counts[-1] for counts in rows.values())
    lines += ["", f"{total} command lines, {bad} end in a traceback, a signal or a hang."]
    print("\n".join(lines))
    if args.save:
        table.write_text("\n".join(["# Damaged files and full disks", "", MADE_BY, "", *lines]) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
