"""Control edges that let a parameter's readers end before it is overwritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def unordered(op: int, readers: Iterable[int], producers: Sequence[Sequence[int]]) -> list[int]:
    """The readers that no path of data leads from to `op`, so that a control edge must.

    Args:
        op: the op that overwrites.
        readers: ops with lower numbers than `op`.
        producers: by op, the ops it reads from, all of lower numbers.
    """
    missing = set(readers)
    lowest = min(missing, default=op)
    seen, pending = {op}, [op]
    while pending and missing:
        if lowest not in missing:
            lowest = min(missing)
        for producer in producers[pending.pop()]:
            if producer >= lowest and producer not in seen:
                seen.add(producer)
                pending.append(producer)
                missing.discard(producer)
    return sorted(missing)
