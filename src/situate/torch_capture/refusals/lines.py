"""Source lines of the captured program, among those of PyTorch, Python and situate."""

from __future__ import annotations

import dis
import re
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SITUATE = tuple(str(Path(__file__).parents[2] / folder) for folder in ("torch_capture", "runtime"))

_ORIGINAL = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
"""A line of the traceback that a graph keeps for each node."""


def user_line(error: BaseException) -> str:
    """`file.py:12: ` of the innermost line outside PyTorch, Python and situate; empty if there is
    none."""
    frame = user_frame(error)
    return format_line(frame.filename, frame.lineno) if frame else user_line_in(str(error))


def user_line_in(text: str) -> str:
    """The same line of a traceback as text, among the frames that situate calls."""
    for match in reversed([*_ORIGINAL.finditer(text)]):
        # Frames above situate's belong to the program that calls it, not to the step.
        if match["file"].startswith(SITUATE):
            break
        if is_users(match["file"]):
            return format_line(match["file"], int(match["line"]))
    return ""


def user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame outside PyTorch, Python and situate."""
    return user_frame_of(traceback.extract_tb(error.__traceback__))


def user_frame_of(frames: Sequence[traceback.FrameSummary]) -> traceback.FrameSummary | None:
    """The innermost such frame of a stack."""
    return next((frame for frame in reversed(frames) if is_users(frame.filename)), None)


def is_raised_by_user(error: BaseException) -> bool:
    """True if a `raise` or `assert` outside PyTorch, Python and situate raised the error."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None or not is_users(at.tb_frame.f_code.co_filename):
        return False
    # An error from C code also ends in a frame of the user's, but at a call instruction.
    return at.tb_frame.f_code.co_code[at.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def is_users(filename: str) -> bool:
    """True for a file that is not part of PyTorch, Python or situate."""
    torch = str(getattr(sys.modules.get("torch"), "__file__", None) or "torch/__init__.py")
    inside_stdlib = filename.startswith(_stdlib()) and "site-packages" not in filename
    foreign = filename.startswith((str(Path(torch).parent), *SITUATE, "<"))
    return not (foreign or inside_stdlib)


@cache
def _stdlib() -> str:
    return sysconfig.get_paths()["stdlib"]


def inside_package(filename: str) -> str:
    """The path of a file among installed packages, such as `timm/layers/norm.py`; empty for other
    files."""
    path = filename.replace("\\", "/")
    _, separator, inside = path.rpartition("/site-packages/")
    folders = (folder.replace("\\", "/").rstrip("/") + "/" for folder in sys.path if folder)
    beside = (path.removeprefix(f) for f in folders if path.startswith(f) and _installs(f))
    return inside if separator else next(beside, "")


@cache
def _installs(folder: str) -> bool:
    """True if packages were installed into a folder, as by `pip install --target`."""
    return any(Path(folder).glob("*.dist-info"))


def format_line(filename: str, line: int | None) -> str:
    """`file.py:12: ` of a line."""
    path = Path(filename)
    here = str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
    return f"{inside_package(filename) or here}:{line}: "
