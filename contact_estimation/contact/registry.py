"""Contact laws by name, each checked against the protocol when it is loaded."""

from __future__ import annotations

import functools

import casadi as ca

from contact_estimation import plugins
from contact_estimation.contact.law import FRICTION, LAW_GROUPS, ContactLaw, LawParameter
from contact_estimation.exceptions import ConfigError


@functools.cache
def find_law(name: str) -> ContactLaw:
    """Return a law by name.

    Args:
        name: shipped name, entry point of the group ``contact_estimation.laws``, ``module:Class`` or ``file.py:Class``.

    Raises:
        ConfigError: no such law, it cannot be imported, or it is no contact law.
    """
    return _checked(name, _made(name, plugins.load(plugins.LAWS, name)))


def same_normal_force(first: str, second: str) -> bool:
    """Whether two laws push and pull alike at their priors, pressed and in free space.

    A law that cannot be found is unlike every other.

    Args:
        first: name, as :func:`find_law` takes it.
        second: the same.
    """
    forces = []
    for name in (first, second):
        try:
            law = find_law(name)
        except ConfigError:
            return first == second
        mean = ca.DM([p.mean for p in law.parameters])
        forces.append([float(law.force(ca.DM(1e4), ca.DM(d), ca.DM(2, 1), mean)[0]) for d in (2e-3, -5e-4, -4e-3)])
    return all(abs(a - b) < 1e-6 for a, b in zip(*forces))


def _made(name: str, factory: object) -> object:
    if not callable(factory):
        raise ConfigError(f"contact law '{name}' is {factory!r}; expected a class or a function that makes a law")
    try:
        return factory()
    except TypeError as error:
        raise ConfigError(f"contact law '{name}' cannot be made without arguments: {error}") from error


def _checked(name: str, law: object) -> ContactLaw:
    """``law`` where it keeps the protocol."""
    parameters = getattr(law, "parameters", None)
    if not isinstance(parameters, tuple) or not all(isinstance(p, LawParameter) for p in parameters):
        raise ConfigError(f"contact law '{name}': 'parameters' must be a tuple of LawParameter, found {parameters!r}")
    for word in ("feels_slip", "opens"):
        if not isinstance(getattr(law, word, None), bool):
            raise ConfigError(f"contact law '{name}': '{word}' must be True or False, found {getattr(law, word, None)}")
    names = [p.name for p in parameters]
    wrong = [p.name for p in parameters if p.group not in LAW_GROUPS or not p.scale > 0 or p.std < 0]
    if wrong or len(set(names)) != len(names):
        raise ConfigError(
            f"contact law '{name}': parameters need different names, a scale above 0, a std of 0 or more and a group "
            f"of {', '.join(LAW_GROUPS)}; found {', '.join(wrong) or names}"
        )
    if len(set(names) & set(FRICTION)) == 1:
        raise ConfigError(
            f"contact law '{name}': parameters {' and '.join(FRICTION)} are the friction coefficients along the two "
            f"tangents; give both, or another name; found {names}"
        )
    _check_force(name, law)  # type: ignore[arg-type]  # what is left of the protocol is checked there
    return law  # type: ignore[return-value]


def _check_force(name: str, law: ContactLaw) -> None:
    """Evaluate the law, and refuse one whose force has the wrong shape or depends on what it is not given."""
    k, depth, slip = ca.SX.sym("k"), ca.SX.sym("depth"), ca.SX.sym("slip", 2)
    parameters = ca.SX.sym("parameters", len(law.parameters))
    inputs = [k, depth, slip, parameters]
    try:
        normal, tangential = law.force(*inputs)
        function = ca.Function("law", inputs, [ca.SX(normal), ca.SX(tangential)])
    except Exception as error:  # a law of somebody else's may raise anything
        raise ConfigError(
            f"contact law '{name}': force(stiffness, depth, slip, parameters) must return (normal, tangential) as "
            f"CasADi expressions of its arguments; it failed with {type(error).__name__}: {error}"
        ) from error
    shapes = [function.size_out(i) for i in (0, 1)]
    if shapes != [(1, 1), (2, 1)]:
        raise ConfigError(f"contact law '{name}': force returns shapes {shapes}, expected a number and (2, 1)")
    mean = [p.mean for p in law.parameters]
    values = [v for d in (-1e-2, 0.0, 1e-3) for v in function(1e4, d, [1e-4, 0.0], mean)]
    if not all(ca.DM(v).is_regular() for v in values):
        raise ConfigError(f"contact law '{name}': the force is not finite at its prior between -10 mm and 1 mm depth")
    if not law.feels_slip and ca.depends_on(ca.vertcat(ca.SX(normal), ca.SX(tangential)), slip):
        raise ConfigError(f"contact law '{name}': the force depends on the slip, so 'feels_slip' must be True")
