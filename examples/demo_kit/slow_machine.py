"""Times of a demo on a slow machine: sessions, leases and time-outs are stretched by its measured speed.

The product's own defaults do not follow the machine. A demo that shows what happens to a bookie that is lost must not
lose the others because they get too little of the processor to tell that they live.
"""

from __future__ import annotations

from dataclasses import replace

from bookkeeper import ClientConfig
from bookkeeper.launchers.machine_speed import stretch

_SESSION_MAX_S = 300.0


def session_s(usual: float) -> float:
    """How long a session with the metadata store lasts here that usually lasts so long."""
    return round(min(_SESSION_MAX_S, usual * stretch()), 1)


def client_config(config: ClientConfig | None = None) -> ClientConfig:
    """A client whose patience is stretched."""
    usual, times = config or ClientConfig(), stretch()
    return replace(
        usual,
        connect_timeout_ms=int(usual.connect_timeout_ms * times),
        request_timeout_ms=int(usual.request_timeout_ms * times),
        add_timeout_ms=int(usual.add_timeout_ms * times),
        force_timeout_ms=int(usual.force_timeout_ms * times),
        open_timeout_ms=int(usual.open_timeout_ms * times),
        bookie_stall_ms=int(usual.bookie_stall_ms * times),
        metadata_timeout_ms=int(usual.metadata_timeout_ms * times),
        metadata_session_ms=int(session_s(usual.metadata_session_ms / 1000) * 1000),
    )


def environment() -> dict[str, str]:
    """For children that run ``bk``."""
    return {"BK_METADATA_SESSION": f"{session_s(ClientConfig().metadata_session_ms / 1000):g}"}
