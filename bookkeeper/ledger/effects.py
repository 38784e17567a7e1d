"""What the machines ask for, in words they share.

A machine is told what happened (``on_...``) and answers with a list of effects. It opens no connection, reads no
clock and never waits. Time is an argument: seconds of any monotonic clock. Failure to perform an effect is an
event like any other: every effect says how to report back.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call ``on_tick`` at ``time`` (seconds of the clock that ``now`` came from). Replaces an earlier one."""

    time: float
