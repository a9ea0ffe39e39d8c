"""Programs that compute otherwise while they are exported, as libraries do that keep a size open or
make a mask which nothing needs: they are captured as they run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from situate.readers.torch.lines import is_users
from situate.readers.torch.patched import replaced


@contextlib.contextmanager
def exporting_unseen() -> Iterator[None]:
    """Tell all but PyTorch itself that nothing is exported."""
    import torch

    exports = torch.compiler.is_exporting

    def is_exporting() -> bool:
        return not is_users(sys._getframe(1).f_code.co_filename) and exports()

    with replaced(torch.compiler, "is_exporting", is_exporting):
        yield
