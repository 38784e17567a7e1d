"""What an application may set. Defaults stand here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.auth.config import AuthConfig
from bookkeeper.errors import ConfigError, require, require_below, require_range
from bookkeeper.ledger.reader import ReadConfig
from bookkeeper.ledger.recovery import RecoveryConfig
from bookkeeper.ledger.writer import WriterConfig
from bookkeeper.net.tls import TlsConfig
from bookkeeper.settings import structure

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings of one client. Times are in milliseconds, sizes in bytes, as the names say."""

    protocol: str = "v3"
    """``"v3"`` (default) or ``"v2"``: the dialect of adds, single reads and fences. Batch reads always use v2."""

    connect_timeout_ms: int = 2_000
    """A bookie that does not accept a connection within this is taken for unavailable."""

    request_timeout_ms: int = 5_000
    """How long one bookie may take to answer one read, fence or explicit LAC."""

    add_timeout_ms: int = 15_000
    """An append that finds no ack quorum within this ends with AddTimeoutError and ends the handle."""

    force_timeout_ms: int = 15_000
    """How long a force() may take until every bookie of the ensemble has answered it."""

    open_timeout_ms: int = 120_000
    """How long open_ledger may take in all, a recovery with its attempts included."""

    bookie_stall_ms: int = 500
    """A bookie without progress for this long, while others make some, has failed for this ledger."""

    bookie_trail_bytes_max: int = 32 * MIB
    """A bookie this far behind the confirmed end has failed for this ledger."""

    pending_bytes_max: int = 64 * MIB
    """Payload bytes of one handle that are sent and not yet confirmed; beyond, append waits."""

    pending_entries_max: int = 200_000
    """Entries of one handle that are sent and not yet confirmed; beyond, append waits."""

    entry_size_max: int = 5 * MIB - 4 * KIB
    """Larger payloads are refused at once: a bookie's frame limit is 5 MiB with its headers."""

    speculative_read_ms: int = 500
    """A read that was not answered within this is also asked of the next bookie."""

    read_window: int = 128
    """Reads in flight when entries are read one by one."""

    batch_read_bytes: int = 400 * KIB
    """How much one batch read asks for. A reply that fits into a connection's receive buffer is not copied there."""

    batch_reads_ahead: int = 4
    """Batch reads in flight when a ledger is read from front to back."""

    explicit_lac_delay_ms: int = 0
    """How long a last add confirmed may wait for an append that carries it, before a silent writer sends it by
    itself. 0: until the next turn of the loop. An application whose ledgers nobody tails saves half of the bookies'
    work for single appends by waiting."""

    long_poll_ms: int = 3_000
    """How long a bookie may hold a long poll. Below the 5 s read time limit of every client."""

    metadata_poll_ms: int = 2_000
    """How often a tailing reader looks at the ledger's metadata, watches or not."""

    bookies_poll_ms: int = 30_000
    """How often the list of bookies is read again, watches or not."""

    metadata_timeout_ms: int = 10_000
    """How long a change of metadata is tried while the store is away; then a clear error."""

    metadata_session_ms: int = 10_000
    """The session with ZooKeeper (or a SQLite file) ends without contact for so long, and a repair's locks with it.
    ZooKeeper's servers grant 2 to 20 of their ticks (4 to 40 s), whatever was asked for. No part of ``embedded:``."""

    quarantine_ms: int = 30_000
    """How long a bookie that failed is chosen last for new ensembles. A preference, never a refusal."""

    reconnect_delay_min_ms: int = 20
    """First pause before a lost bookie is tried again; doubles up to reconnect_delay_max_ms."""

    reconnect_delay_max_ms: int = 2_000

    recovery_attempts: int = 5
    """How often an inconclusive recovery is tried again before open_ledger gives up (V2)."""

    recovery_retry_ms: int = 500
    """Pause between two such attempts."""

    frame_size_max: int = 5 * MIB
    """Frames from bookies above this end the connection."""

    tls: TlsConfig | None = None
    """TLS settings. If given, connections to bookies are always encrypted, and never fall back to clear text."""

    auth: AuthConfig = field(default_factory=AuthConfig)
    """How this client authenticates itself, besides the certificate in ``tls``."""

    def __post_init__(self) -> None:
        require(self.protocol in ("v2", "v3"), f'protocol must be "v2" or "v3", not "{self.protocol}"')
        require_range(self, *_POSITIVE, above=0)
        require_range(self, "explicit_lac_delay_ms", least=0)
        require_below(self, "long_poll_ms", "request_timeout_ms")
        require_range(self, "metadata_session_ms", least=1_000, most=300_000)
        require_below(self, "bookie_stall_ms", "add_timeout_ms")
        require_below(self, "reconnect_delay_min_ms", "reconnect_delay_max_ms", or_equal=True)
        require(
            self.entry_size_max + 4 * KIB <= self.frame_size_max,
            f"entry_size_max and 4096 bytes for headers must be at most frame_size_max ({self.frame_size_max}), not "
            f"{self.entry_size_max + 4 * KIB}",
        )

    def writer(self, *, deferred_sync: bool = False) -> WriterConfig:
        """The part that is the writing machine's business."""
        return WriterConfig(
            deferred_sync=deferred_sync,
            force_timeout_ms=self.force_timeout_ms,
            add_timeout_ms=self.add_timeout_ms,
            stall_ms=self.bookie_stall_ms,
            trail_bytes_max=self.bookie_trail_bytes_max,
            pending_bytes_max=self.pending_bytes_max,
            pending_entries_max=self.pending_entries_max,
        )

    def recovery(self) -> RecoveryConfig:
        """The part that is the recovering machine's business."""
        return RecoveryConfig(hedge_ms=self.speculative_read_ms, retry_ms=self.recovery_retry_ms)

    def reader(self) -> ReadConfig:
        """The part that is the reading machine's business."""
        return ReadConfig(hedge_ms=self.speculative_read_ms)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ClientConfig:
        """A config from a mapping, for instance a table of a TOML file.

        Raises:
            ConfigError: a key that is unknown, a value of the wrong type, or one that breaks a rule.
        """
        try:
            return structure(cls, values)
        except ConfigError as error:
            raise ConfigError(f"client settings: {error}") from error


_POSITIVE: Final = tuple(
    name for name, kind in ClientConfig.__annotations__.items() if kind == "int" and name != "explicit_lac_delay_ms"
)
