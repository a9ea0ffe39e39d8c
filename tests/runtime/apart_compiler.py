"""What compiles the device of `tests.runtime.apart`; None where there is no compiler."""

from __future__ import annotations

import os
import shutil

COMPILER = os.environ.get("CXX") or shutil.which("c++")
