"""`package.module:function`: a user's function that builds a model."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from situate.errors import SituateError, nearest
from situate.torch_capture.build import Build
from situate.torch_capture.patches.devices import names_stand
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.refusals.lines import user_line


@contextmanager
def current_directory() -> Iterator[None]:
    """A block in which modules of the current directory can be imported, also while a model is
    built."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    # Import finders remember the files of a folder, and this one may have new files.
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)


def find_function(text: str) -> tuple[Build, ModuleType]:
    """The function that `package.module:function` names, and its module.

    Raises:
        SituateError: no such module or function, or the module fails when it is imported.
    """
    module_name, _, name = text.partition(":")
    if not (name.isidentifier() and all(part.isidentifier() for part in module_name.split("."))):
        raise SituateError(f"{text!r} must look like package.module:function")
    module = _imported(module_name, text)
    function: Any = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value)]
        what = "is no function" if hasattr(module, name) else "does not exist"
        raise SituateError(f"{text}: {name!r} {what} in {module_name}{nearest(name, functions)}")
    return function, module


def versions(*packages: str) -> str:
    """Versions of the installed packages among `packages`."""
    installed = []
    for package in packages:
        try:
            installed.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(installed)


def _imported(name: str, text: str) -> ModuleType:
    try:
        with quiet(), names_stand(NamedDevices()):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise SituateError(
                f"{text}: no module {missing!r} here or among the installed ones"
            ) from None
        raise SituateError(f"{text}: {name} needs {missing!r}, which is not installed") from None
    except SystemExit as error:
        raise SituateError(
            f"{text}: importing {name}: {user_line(error)}the program ends here: put what it runs "
            'as a script under if __name__ == "__main__":'
        ) from None
    except Exception:
        with explained(text, f"importing {name}"):
            raise
