"""Batch estimation (paper 3): a whole trajectory and the model's parameters together, with MuJoCo as the engine.

The order of the files: ``rotations``, ``trajectory`` (positions and their differences), ``norms``, ``engine`` (both
formulations), ``parameters``, ``modifiers``, ``inertia`` and ``scene`` (what is identified, in what), ``channels`` and
``grid`` (what was measured), ``problem`` (cost and derivatives), ``bordered``, ``line_search``, ``contact_events`` and
``solver`` (Newton steps), ``estimate`` (continuation), ``result`` and ``report``; ``scene_file``, ``recording`` and
``runner`` for files; ``starts``, ``cross_validation`` and ``left_out`` ask whether a result holds.
"""

from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.estimate import Estimate, Stage, estimate
from contact_estimation.identify.batch.modifiers import modifier
from contact_estimation.identify.batch.parameters import PhysicalParameter
from contact_estimation.identify.batch.problem import Problem, Setup
from contact_estimation.identify.batch.result import Result, read_out
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.solver import Options, solve

__all__ = [
    "Channel",
    "Estimate",
    "Measurement",
    "Options",
    "PhysicalParameter",
    "Problem",
    "Result",
    "Scene",
    "Setup",
    "Stage",
    "estimate",
    "modifier",
    "read_out",
    "solve",
]
