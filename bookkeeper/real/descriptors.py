"""How many files and connections this process may have open."""

from __future__ import annotations

import resource


def allow_descriptors() -> int:
    """Raise the limit of open descriptors as far as the system lets this process do it; the limit then.

    Most systems begin with 1024, and let anybody have hundreds of thousands: the low one is for programs that know of
    no other way to wait than ``select``. A bookie keeps every entry log open, and serves thousands of connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # some systems name a limit that they do not grant
        return soft
    return hard
