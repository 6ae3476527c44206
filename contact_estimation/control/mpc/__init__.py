"""Contact-aware model predictive control (paper 2, section 5)."""

from contact_estimation.control.mpc.costs import CostTerm
from contact_estimation.control.mpc.problem import MpcProblem
from contact_estimation.control.mpc.settings import MpcSettings, load_mpc_settings
from contact_estimation.control.mpc.solver import Solution, Solver, make_solver

__all__ = ["CostTerm", "MpcProblem", "MpcSettings", "Solution", "Solver", "load_mpc_settings", "make_solver"]
