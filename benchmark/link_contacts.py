#!/usr/bin/env python3
"""Pushes at the links: are they seen, which link is named, and how far off is the place?

    python benchmark/link_contacts.py [--robot ur16e] [--robot fr3] [--motion still] [--seeds 10] [--first 100] [--save]

Recordings come from ``rigid_body_recording.py``: Pinocchio's rigid-body dynamics, LuGre friction, coloured noise, bias.
A contact is drawn from the cylinders of the URDF by code of this script: uniform over the area that no other link
covers, pushing inwards, up to 0.3 of friction. Each recording has one push at every link from the second on: 0.3 s of
rise, 1 s, 0.3 s of fall; 15 to 40 N (FR3) or 30 to 80 N (UR16e). ``still``: the motors stand; ``slow``: all joints move
at up to 0.3 rad/s. The default observer is asked 1.3 s after the onset. ``--save`` writes link_contacts.md.

Columns: share that is detected, and the median norm of the joint torque of those that are not [Nm]; median error of the
joint torque; right link, and right or next one, of those that have one; of those in the mode ``unknown`` the error of
the posterior's mean point (mean / median / 90 %) [cm], and the share that the 90 % region holds (one of its points is
within 2 cm of the truth, the spacing of candidates); share of the detected ones whose point is told, and its mean
error; share that is refused. A known contact that took the push counts with the link and the point that it tells.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from report import add_save_argument, heading, publish
from rigid_body_recording import RATE, Push, Recording, RigidBodyArm, World, pushes, random_motion, record

from contact_estimation import load_arm
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot.description import urdf_path
from contact_estimation.robot.surface import link_surface

SENSORS = {"fr3": None, "ur16e": "ur16e_driver"}
FORCE = {"fr3": (15.0, 40.0), "ur16e": (30.0, 80.0)}
#: Amplitude [rad] and speed [rad/s] of the joints' sinusoids.
MOTION = {"still": (0.0, 1.0), "slow": (0.2, 1.5)}
FRICTION, RISE, HELD, PAUSE = 0.3, 0.3, 1.0, 1.0
COLUMNS = [
    "detected",
    "missed [Nm]",
    "torque [%]",
    "link",
    "within one",
    "mean",
    "median",
    "90 %",
    "covered",
    "told",
    "its error",
]
COLUMNS += ["refused"]


class Cylinders:
    """The arm's surface, read from the URDF.

    Args:
        robot: its name.
    """

    def __init__(self, robot: str) -> None:
        self.arm = load_arm(robot)
        self.model, self.data = self.arm.model, self.arm.model.createData()
        self.shapes = []
        for link in ElementTree.parse(urdf_path(self.arm.settings)).getroot().findall("link"):
            for shape in link.findall("collision"):
                origin, size = shape.find("origin"), shape.find("geometry/cylinder")
                turn, place = (np.array(origin.get(k).split(), float) for k in ("rpy", "xyz"))
                pose = pin.SE3(pin.rpy.rpyToMatrix(*turn), place)
                frame = self.model.getFrameId(link.get("name"))
                self.shapes.append((frame, pose, float(size.get("radius")), 0.5 * float(size.get("length"))))

    def links(self) -> list[str]:
        """Return the links from the second moving one on."""
        frames = [self.model.frames[shape[0]] for shape in self.shapes]
        return list(dict.fromkeys(f.name for f in frames if f.parentJoint > 1))

    def draw(self, link: str, q: np.ndarray, rng: np.random.Generator) -> tuple[int, np.ndarray, np.ndarray]:
        """Return joint, point (3,) [m] in its frame, and outward normal (3,) in base axes, of a link's free point."""
        pin.framesForwardKinematics(self.model, self.data, q)
        own = [s for s in self.shapes if self.model.frames[s[0]].name == link]
        areas = np.array([2 * np.pi * r * (2 * h + r) for *_, r, h in own])
        while True:
            frame, pose, radius, half = own[rng.choice(len(own), p=areas / areas.sum())]
            turn, height = rng.uniform(0, 2 * np.pi), rng.uniform(-half, half)
            normal, out = np.array([np.cos(turn), np.sin(turn), 0.0]), radius
            if rng.uniform() > 2 * half / (2 * half + radius):  # on a cap
                height, out = half * np.sign(height), radius * np.sqrt(rng.uniform())
                point, normal = np.append(out * normal[:2], height), np.array([0.0, 0.0, np.sign(height)])
            else:
                point = np.append(out * normal[:2], height)
            world = self.data.oMf[frame] * pose
            at = world.act(point)
            if not any(self._inside(other, at + 1e-3 * world.rotation @ normal) for other in self.shapes):
                joint = self.model.frames[frame].parentJoint
                return joint - 1, self.data.oMi[joint].actInv(at), world.rotation @ normal

    def _inside(self, shape: tuple, at: np.ndarray) -> bool:
        frame, pose, radius, half = shape
        local = (self.data.oMf[frame] * pose).actInv(at)
        return bool(np.hypot(local[0], local[1]) < radius and abs(local[2]) < half)


def make(robot: str, motion: str, seed: int) -> tuple[Recording, list[tuple[Push, str]]]:
    """Return a recording with one push at every link, and the pushes with their links."""
    rng, surface, body = np.random.default_rng([seed, 5]), Cylinders(robot), RigidBodyArm(robot)
    links = surface.links()
    t = np.arange(int((2.0 + len(links) * (2 * RISE + HELD + PAUSE)) * RATE)) / RATE
    theta = random_motion(robot, t, rng, *MOTION[motion])
    plan = []
    for k, name in enumerate(rng.permutation(links)):
        start = 2.0 + k * (2 * RISE + HELD + PAUSE)
        joint, point, normal = surface.draw(name, theta[int(start * RATE)], rng)
        side = np.cross(normal, rng.normal(size=3))
        direction = -normal + FRICTION * np.sqrt(rng.uniform()) * side / np.linalg.norm(side)
        force = rng.uniform(*FORCE[robot]) * direction / np.linalg.norm(direction)
        plan.append((Push(start, start + 2 * RISE + HELD, force, RISE, joint, point), str(name)))
    factors = dict(zip(("coulomb", "presliding", "stiffness"), rng.uniform(0.7, 1.4, 3)))
    return record(body, theta, pushes(body, [p for p, _ in plan], t), World(**factors, seed=seed)), plan


def score(robot: str, motion: str, seed: int) -> list[dict]:
    """Return the figures of every push of a recording."""
    recording, plan = make(robot, motion, seed)
    stream = open_stream(robot, "contact_imm", SENSORS[robot])
    arm = stream.arm
    order, data = list(link_surface(arm, stream.link_contact.settings.candidates).names), arm.model.createData()
    found = []
    ends = {int((p.end - RISE) * RATE) - 1: (p, name) for p, name in plan}
    torque = []
    for k, sample in enumerate(zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau)):
        estimate = stream.push(*sample)
        torque.append(estimate.tau_ext)
        if k not in ends:
            continue
        push, name = ends[k]
        contact, held = max(estimate.contacts, key=lambda c: c.probability), slice(k - int(HELD * RATE), k)
        truth = recording.torque[held]
        row = {
            "link": name,
            "detected": estimate.mode != "free",
            "size": np.linalg.norm(recording.torque[k]),
            "torque": np.linalg.norm(np.array(torque[held]) - truth) / np.linalg.norm(truth),
            "told_link": contact.link,
            "refused": contact.place is not None and contact.place.reason,
        }
        pin.forwardKinematics(arm.model, data, recording.q[k])
        truth = data.oMi[push.link + 1].act(push.offset)
        if contact.link:
            row["within"] = abs(order.index(contact.link) - order.index(name)) <= 1
            row["told"] = 100 * np.linalg.norm(contact.point_base - truth)
        if contact.link and contact.place is not None:
            row["error"] = 100 * np.linalg.norm(contact.place.point - truth)
            row["covered"] = np.linalg.norm(contact.place.region - truth, axis=1).min() < 0.02
        found.append(row)
    return found


def figures(rows: list[dict]) -> list[str]:
    """Return the cells of a table row."""
    linked = [r for r in rows if r["told_link"]]
    placed = [r for r in linked if "error" in r]
    errors = [r["error"] for r in placed]
    told = [r["told"] for r in linked if np.isfinite(r["told"])]
    missed = [r["size"] for r in rows if not r["detected"]]
    seen = max(sum(bool(r["detected"]) for r in rows), 1)

    def share(values: list[bool], of: int) -> str:
        return f"{100 * sum(map(bool, values)) / max(of, 1):.0f}"

    quantiles = [f"{f(errors):.1f}" if errors else "-" for f in (np.mean, np.median, lambda e: np.quantile(e, 0.9))]
    return [
        share([r["detected"] for r in rows], len(rows)),
        f"{np.median(missed):.1f}" if missed else "-",
        f"{100 * np.median([r['torque'] for r in rows]):.1f}",
        share([r["told_link"] == r["link"] for r in linked], len(linked)),
        share([r["within"] for r in linked], len(linked)),
        *quantiles,
        share([r["covered"] for r in placed], len(placed)),
        share([True] * len(told), seen),
        f"{np.mean(told):.1f}" if told else "-",
        share([bool(r["refused"]) for r in rows], seen),
    ]


def table(robot: str, motion: str, rows: list[dict]) -> list[str]:
    """Return a Markdown table per link and of all."""
    links = list(dict.fromkeys(Cylinders(robot).links()))
    lines = [f"## {robot}, {motion}, {len(rows)} pushes", "", "| link | " + " | ".join(COLUMNS) + " |"]
    lines.append("|---" * (len(COLUMNS) + 1) + "|")
    for name in [*links, "all"]:
        own = [r for r in rows if name in ("all", r["link"])]
        lines.append(f"| {name} | " + " | ".join(figures(own)) + " |")
    return [*lines, ""]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=list(SENSORS))
    parser.add_argument("--motion", action="append", choices=list(MOTION))
    parser.add_argument("--seeds", type=int, default=10, help="recordings per table")
    parser.add_argument("--first", type=int, default=100, help="first seed")
    add_save_argument(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    text = heading("Pushes at the links", "Columns as in the script's docstring.")
    for robot in given.robot or list(SENSORS):
        for motion in given.motion or list(MOTION):
            rows = [r for seed in range(given.first, given.first + given.seeds) for r in score(robot, motion, seed)]
            text += table(robot, motion, rows)
            print(f"{robot}, {motion}: done", file=sys.stderr, flush=True)
    publish(text, given.save)


if __name__ == "__main__":
    main()
