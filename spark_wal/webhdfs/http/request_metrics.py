"""How many requests of each operation, how long they took: as text that Prometheus reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Operation:
    count: int = 0
    failed: int = 0
    seconds: float = 0.0


class RequestMetrics:
    """Of one gateway."""

    def __init__(self) -> None:
        self._operations: dict[str, _Operation] = {}

    def count(self, operation: str, seconds: float, *, ok: bool) -> None:
        """One request was answered."""
        entry = self._operations.setdefault(operation, _Operation())
        entry.count += 1
        entry.failed += not ok
        entry.seconds += seconds

    def text(self) -> str:
        """In the Prometheus exposition format."""
        lines = ["# TYPE gateway_requests_total counter"]
        entries = sorted(self._operations.items())
        lines += [f'gateway_requests_total{{op="{name}"}} {entry.count}' for name, entry in entries]
        lines.append("# TYPE gateway_requests_refused_total counter")
        lines += [f'gateway_requests_refused_total{{op="{name}"}} {entry.failed}' for name, entry in entries]
        lines.append("# TYPE gateway_request_seconds_total counter")
        lines += [f'gateway_request_seconds_total{{op="{name}"}} {entry.seconds:.6f}' for name, entry in entries]
        return "\n".join(lines) + "\n"
