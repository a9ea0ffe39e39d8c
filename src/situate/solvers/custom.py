"""Learning methods of the user's own."""

from __future__ import annotations

from collections.abc import Collection

from situate.errors import SituateError
from situate.solvers.learned.learner import MakeLearner


def custom_name(make: MakeLearner, reserved: Collection[str]) -> str:
    """The method name of a function that makes a learner.

    Args:
        make: the function. Its attribute `name`, or else its own name, names the method.
        reserved: names of other methods.

    Raises:
        SituateError: not a function, no name, or a reserved name.
    """
    if not callable(make):
        raise SituateError(
            "method: must be a name of situate.METHODS or a function that makes a learner, got "
            f"an object of type {type(make).__name__!r}"
        )
    name = _name(make)
    if not name:
        raise SituateError(
            f"method: {type(make).__name__!r} has no name for results and studies; set its "
            "attribute 'name' to a string"
        )
    if name in reserved:
        raise SituateError(f"method: {name!r} is a method of situate's; give yours another name")
    return name


def _name(make: MakeLearner) -> str:
    names = (getattr(make, "name", None), getattr(make, "__name__", None))
    return next((name for name in names if isinstance(name, str)), "")
