"""Text that others have written, as it may go to a terminal."""

from __future__ import annotations


def harmless(text: str, *, lines: bool = True) -> str:
    """``text`` with everything that commands a terminal, or turns the direction of writing, as escapes.

    ``lines``: it may have lines and tabs; otherwise these are escapes, too.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(each if each.isprintable() or each in kept else repr(each)[1:-1] for each in text)
