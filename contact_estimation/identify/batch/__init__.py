"""Batch estimation (paper 3): a whole trajectory and the model's parameters together, with MuJoCo as the engine.

The order of the files:

- model: ``rotations``, ``trajectory`` (positions and their differences), ``engine`` (both formulations)
- what is identified, in what: ``parameters``, ``modifiers``, ``inertia``, ``scene``
- what was measured: ``channels``, ``grid``, ``grid_channel``
- cost and derivatives: ``norms``, ``residuals``, ``problem``, ``linearisation``, ``bordered``
- Newton steps: ``newton_step``, ``line_search``, ``contact_events``, ``solver``
- start and continuation: ``start``, ``shooting``, ``estimate``
- result: ``result``, ``filmstrip``, ``report``
- whether it holds: ``evidence``, ``held``, ``discretisation``, ``starts``, ``cross_validation``, ``left_out``
- files: ``scene_file``, ``recording``, ``runner``
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
