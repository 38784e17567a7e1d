"""A metadata service inside this process: for tests, the simulator, and a cluster that lives in one process."""

from __future__ import annotations


class MemoryCluster:
    """The service: shared by any number of sessions (``cluster.connect() -> MemoryStore``). Deterministic.

    For tests: ``expire(store)`` ends a session, ``suspend(store)`` / ``resume(store)`` cut one off,
    ``outage = True`` cuts everybody off, ``store.interference`` loses requests or replies and delays them.
    """
