"""Numbers out of numpy arrays, in what is hashed or written."""

from __future__ import annotations


def plain(value: object) -> object:
    """A numpy scalar as a number of Python's: the `enc_hook` of msgspec, which encodes no others.

    Raises:
        NotImplementedError: it is something else; msgspec asks for this error.
    """
    item = getattr(value, "item", None)
    if item is None:
        raise NotImplementedError(f"cannot encode a {type(value).__name__}")
    return item()
