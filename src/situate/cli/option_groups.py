"""Classes of options: their fields become options of a command.

    @with_options
    def plan(model: Model, *, budget: SearchBudget, outputs: OutputOptions) -> int: ...

typer reads the signature of a function. `with_options` replaces each parameter whose type is a
dataclass by the fields of that class, which carry typer's metadata, and builds the object when the
command runs. Constructors check the values.

Modules with such classes do not import `annotations` from `__future__`, so that annotations are
types and not strings.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_args, get_type_hints

from situate.errors import SituateError

if TYPE_CHECKING:
    import typer

Options = TypeVar("Options")
Status = TypeVar("Status")


@dataclass(frozen=True)
class After:
    """Metadata of an option that follows another one in help, whatever the order of fields."""

    name: str


@dataclass_transform(frozen_default=True)
def option_class(cls: type[Options]) -> type[Options]:
    """A frozen dataclass of options.

    It has no comparison and no `repr`, because their code would double the time that these classes
    add to every start of the program.
    """
    return dataclass(frozen=True, eq=False, repr=False)(cls)


OMITTED = "omitted"
"""Metadata of an inherited field that the command line does not offer."""


def with_options(command: Callable[..., Status]) -> Callable[..., Status]:
    """The command with the fields of its classes of options as parameters."""
    types = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in types.items() if is_dataclass(kind)}

    @functools.wraps(command)
    def run(**values: Any) -> Status:
        objects = {name: _build(kind, values) for name, kind in groups.items()}
        return command(**objects, **values)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind = types[parameter.name]
        parameters += (
            _parameters(kind) if is_dataclass(kind) else [parameter.replace(annotation=kind)]
        )
    # A signature refuses a parameter without a default behind one with a default, unless all are
    # keyword-only. typer passes values by keyword.
    parameters = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in _sorted(parameters)]
    return with_signature(run, parameters)


def with_signature(
    command: Callable[..., Status], parameters: Sequence[Parameter]
) -> Callable[..., Status]:
    """The command with another signature; typer reads it and the annotations."""
    # inspect.signature prefers this to the signature of the function that `wraps` names.
    vars(command)["__signature__"] = Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _parameters(options: Any) -> Iterator[Parameter]:
    """One parameter per option of a class; nested classes are expanded in place."""
    for field in fields(options):
        if is_dataclass(field.type):
            yield from _parameters(field.type)
        elif OMITTED not in get_args(field.type):
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(
                field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type
            )


def _build(options: Any, values: dict[str, Any]) -> object:
    """An object of a class of options. Its fields are removed from `values`."""
    arguments: dict[str, object] = {}
    for field in fields(options):
        if is_dataclass(field.type):
            arguments[field.name] = _build(field.type, values)
        elif field.name in values:
            arguments[field.name] = values.pop(field.name)
    return options(**arguments)


def _sorted(parameters: list[Parameter]) -> list[Parameter]:
    """The parameters in the order of help, in which `After` moves some of them."""
    result: list[Parameter] = []
    moved: dict[str, list[Parameter]] = {}
    for parameter in parameters:
        place = next((a for a in get_args(parameter.annotation) if isinstance(a, After)), None)
        if place is None:
            result.append(parameter)
        else:
            moved.setdefault(place.name, []).append(parameter)
    for name, options in moved.items():
        start = [parameter.name for parameter in result].index(name) + 1
        result[start:start] = options
    return result


def refuse_others(context: typer.Context, allowed: Collection[str], reason: str) -> None:
    """Refuse options that a kind of model does not have.

    Args:
        allowed: fields of the command's options.
        reason: ends the error, with a remedy.

    Raises:
        SituateError: another option was typed, or is in the file of --config.
    """
    for name in context.params:
        source = context.get_parameter_source(name)
        typed = source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP")
        if typed and name not in allowed:
            option = {"as_json": "json"}.get(name, name.replace("_", "-"))
            raise SituateError(f"--{option}: {reason}")
