"""Whether a bookie has contact with the metadata store, and whose fault it is if it has not."""

from __future__ import annotations

import logging
from typing import Final

from bookkeeper.bookie.health.own_lag import GAP_S, OwnLag
from bookkeeper.ids import BookieId
from bookkeeper.meta.store import SessionState
from bookkeeper.rate_limited_log import RateLimit
from bookkeeper.seams import Clock

log = logging.getLogger(__name__)

_SHARE: Final = 1 / 3
"""A session is renewed after a third of its time."""


class MetadataContact:
    """Follows the session of one bookie with the store."""

    def __init__(self, session_s: float, clock: Clock, lag: OwnLag) -> None:
        self._session_s = session_s
        self._clock = clock
        self._lag = lag
        self._limit = RateLimit(GAP_S)
        self.lost_at: float | None = None
        """When contact was lost, by the monotonic clock; None while it stands."""

    @property
    def lost_for_s(self) -> float | None:
        """Seconds since contact was lost; None while it stands."""
        return None if self.lost_at is None else self._clock.monotonic() - self.lost_at

    def on_session(self, state: SessionState, bookie: BookieId | None) -> None:
        """The session is in another state. ``bookie``: who serves, and is told about; None: nobody yet."""
        if state is SessionState.CONNECTED:
            self.lost_at = None
        elif self.lost_at is None:
            self.lost_at = now = self._clock.monotonic()
            if bookie is not None:
                self._log_loss(state, bookie, now)

    def _log_loss(self, state: SessionState, bookie: BookieId, now: float) -> None:
        not_run_s = self._lag.lately(now, self._session_s)
        if not_run_s < self._session_s * _SHARE:
            log.warning(
                "bookie %s has lost contact with the metadata store (session %s): it goes on serving open ledgers, "
                "and registers again by itself when the store is back",
                bookie,
                state.value,
            )
        elif self._limit.admit(now) is not None:
            log.warning(
                "bookie %s was not run for %.1f s, and its session with the metadata store (%g s; now %s) may have "
                "ended meanwhile: this machine is too busy, or was paused. It goes on serving, and registers again by "
                "itself; a longer --metadata-session tolerates such pauses",
                bookie,
                not_run_s,
                self._session_s,
                state.value,
            )
