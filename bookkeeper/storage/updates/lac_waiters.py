"""Who waits until the last add confirmed of a ledger rises. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable


class LacWaiters:
    """Owned by the loop's thread."""

    def __init__(self) -> None:
        self.by_ledger: dict[int, dict[object, Callable[[int], None]]] = {}
        """Changed here alone; empty while nobody waits."""

    def add(self, ledger_id: int, callback: Callable[[int], None]) -> Callable[[], None]:
        """``callback(lac)`` once, when the ledger's LAC next rises.

        Returns:
            a function that takes the waiter back; harmless afterwards.
        """
        waiters = self.by_ledger.setdefault(ledger_id, {})
        token = object()
        waiters[token] = callback

        def forget() -> None:
            waiters.pop(token, None)
            if not waiters and self.by_ledger.get(ledger_id) is waiters:
                del self.by_ledger[ledger_id]

        return forget

    def wake(self, ledger_id: int, lac: int) -> None:
        """The ledger's LAC has risen to ``lac``."""
        for waiter in list(self.by_ledger.pop(ledger_id, {}).values()):
            waiter(lac)
