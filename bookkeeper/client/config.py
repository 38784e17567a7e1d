"""What an application may set. Defaults stand here, or where they are taken from, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.access.ownership import checked_owner
from bookkeeper.auth.config import AuthConfig
from bookkeeper.codec import FRAME_MAX
from bookkeeper.encryption import EncryptionConfig
from bookkeeper.errors import ConfigError, require, require_below, require_range
from bookkeeper.ledger.config import ReadConfig, RecoveryConfig, WriterConfig
from bookkeeper.ledger.location import Location
from bookkeeper.net.tls import TlsConfig
from bookkeeper.settings import default_of, structure

KIB: Final = 1024
MIB: Final = 1024 * KIB


ENSEMBLE: Final = 3
WRITE_QUORUM: Final = 3
ACK_QUORUM: Final = 2
"""Of a new ledger: its bookies, the copies of each entry, and how many of these make an append durable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings of one client. Times are in milliseconds or seconds, sizes in bytes, as the names say."""

    protocol: str = "v3"
    """``"v3"`` (default) or ``"v2"``: the dialect of adds, single reads and fences. Batch reads always use v2."""

    connect_timeout_ms: int = 2_000
    """A bookie that does not accept a connection within this time counts as unavailable."""

    request_timeout_ms: int = 5_000
    """How long one bookie may take to answer one read, fence or explicit LAC."""

    add_timeout_ms: int = default_of(WriterConfig, "add_timeout_ms")
    """An append that no ack quorum confirms within this time fails with AddTimeoutError and ends the handle."""

    force_timeout_ms: int = default_of(WriterConfig, "force_timeout_ms")
    """How long every bookie of the ensemble together may take to answer a force()."""

    open_timeout_ms: int = 120_000
    """How long open_ledger may take in all, with every attempt of a recovery."""

    close_advice: bool = True
    """Tell the bookies of a ledger when it is closed, so that those that keep a file open for each ledger close
    it. Bookies of other programs skip it."""

    bookie_stall_ms: int = default_of(WriterConfig, "stall_ms")
    """A bookie that makes no progress for this long, while others do, counts as failed for this ledger."""

    bookie_trail_bytes_max: int = default_of(WriterConfig, "trail_bytes_max")
    """A bookie this far behind the confirmed end counts as failed for this ledger."""

    pending_bytes_max: int = default_of(WriterConfig, "pending_bytes_max")
    """How many payload bytes of one handle may be sent and not yet confirmed; then append waits."""

    pending_entries_max: int = default_of(WriterConfig, "pending_entries_max")
    """How many entries of one handle may be sent and not yet confirmed; then append waits."""

    entry_size_max: int = 5 * MIB - 4 * KIB
    """Larger payloads are refused at once: a bookie takes frames of at most 5 MiB, headers included."""

    speculative_read_ms: int = default_of(ReadConfig, "hedge_ms")
    """A read that is not answered within this time is also sent to the next bookie."""

    read_window: int = 128
    """Reads in flight when entries are read one by one."""

    batch_read_bytes: int = 400 * KIB
    """How many bytes one batch read asks for. A connection does not copy a reply that fits into its receive buffer."""

    batch_reads_ahead: int = 4
    """Batch reads in flight when a ledger is read from front to back."""

    explicit_lac_delay_ms: int = 0
    """How long a last add confirmed waits for an append that carries it, before the writer sends it on its own.
    0: until the next turn of the loop. An application whose ledgers nobody tails can set more, and saves half of the
    bookies' work for single appends."""

    long_poll_ms: int = 3_000
    """How long a bookie may hold a long poll. It must be less than ``request_timeout_ms``."""

    metadata_poll_ms: int = 2_000
    """How often a tailing reader reads the ledger's metadata, also without a watch that fires."""

    bookies_poll_ms: int = 30_000
    """How often the list of bookies is read again, also without a watch that fires."""

    metadata_timeout_ms: int = 10_000
    """How long a change of metadata is tried while the store does not answer; then it fails with an error."""

    metadata_session_ms: int = 10_000
    """After so long without contact the session with ZooKeeper (or a SQLite file) ends, and a repair's locks with it.
    ZooKeeper's servers grant 2 to 20 of their ticks (4 to 40 s), whatever is asked for. ``embedded:`` ignores it."""

    placement: str = "rack"
    """How the bookies of a ledger are chosen. ``"rack"``: the copies of each entry in as many racks as there are.
    ``"region"``: in as many regions (the first part of a location), and then racks. ``"random"``: any. Where bookies
    stand is in the metadata (``bk bookies place``, or the bookie's own setting ``location``)."""

    locations_from: str | None = None
    """What says where bookies stand, instead of the metadata: ``file:/PATH`` with lines ``BOOKIE /RACK``,
    ``script:/PATH`` as for Apache's clients (it gets hosts, and prints a location for each), or ``MODULE:FUNCTION``.
    What it does not say is taken from the metadata. It is asked again every ``bookies_poll_ms``;
    nobody waits longer for its answer than ``metadata_timeout_ms``, and its last one counts until the next comes."""

    location: str | None = None
    """Where this client stands: it reads from copies in its own rack first, then from those in its region."""

    placement_by_free_space: bool = False
    """Choose bookies for new ledgers the more often the more free disk they have; one with much more than most counts
    as three times the median. The client asks all bookies for it every ``free_space_poll_ms``."""

    free_space_poll_ms: int = 600_000
    """How often that is asked."""

    racks_min: int = 2
    """The racks that the copies of each entry are to have, as far as there are so many copies."""

    racks_enforced: bool = False
    """Create no ledger, and take no stand-in, that would have fewer racks. A writer then goes on with the bookies it
    has, as long as they are enough for its acknowledgements."""

    quarantine_ms: int = 30_000
    """How long a bookie that failed is chosen last for new ensembles. A preference, never a refusal."""

    reconnect_delay_min_ms: int = 20
    """First pause before the client tries a lost bookie again; the pause doubles up to reconnect_delay_max_ms."""

    reconnect_delay_max_ms: int = 2_000
    """The longest pause before the client tries a lost bookie again."""

    recovery_attempts: int = 5
    """How many attempts a recovery has before open_ledger gives up with RecoveryInconclusiveError."""

    recovery_retry_ms: int = default_of(RecoveryConfig, "retry_ms")
    """Pause between two such attempts."""

    delete_grace_s: int = 24 * 3600
    """For how long a ledger that this client deletes can be brought back. Bookies keep its data for so long. 0: it is
    gone at once."""

    frame_size_max: int = FRAME_MAX
    """A larger frame from a bookie ends the connection."""

    tls: TlsConfig | None = None
    """TLS settings. If given, connections to bookies are always encrypted, and never fall back to clear text."""

    encryption: EncryptionConfig | None = None
    """Where the keys are for ledgers whose entries bookies do not see in clear, and whether new ledgers are such. None:
    they can neither be made nor read."""

    auth: AuthConfig = field(default_factory=AuthConfig)
    """How this client authenticates itself, besides the certificate in ``tls``."""

    owner: str | None = None
    """Whose the ledgers are that this client creates without naming an owner, such as ``ledgers:etl``. Where the access
    policy is followed and none is named, whoever writes a ledger first owns it."""

    def __post_init__(self) -> None:
        if self.owner is not None:
            checked_owner(self.owner)
        require(self.protocol in ("v2", "v3"), f'protocol must be "v2" or "v3", not "{self.protocol}"')
        require(
            self.placement in ("rack", "region", "random"),
            f'placement must be "rack", "region" or "random", not "{self.placement}"',
        )
        if self.location is not None:
            Location.parse(self.location)
        require(
            self.locations_from is None or _SOURCE.fullmatch(self.locations_from) is not None,
            f"locations_from must be file:/PATH, script:/PATH or MODULE:FUNCTION, not {self.locations_from}",
        )
        require(
            not self.racks_enforced or self.placement != "random",
            'racks_enforced needs placement = "rack" or "region"',
        )
        require_range(self, *_POSITIVE, above=0)
        require_range(self, *_NOT_NEGATIVE, least=0)
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
        """The settings of the writing machine."""
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
        """The settings of the recovery machine."""
        return RecoveryConfig(hedge_ms=self.speculative_read_ms, retry_ms=self.recovery_retry_ms)

    def reader(self) -> ReadConfig:
        """The settings of the reading machine."""
        return ReadConfig(hedge_ms=self.speculative_read_ms)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ClientConfig:
        """A config from a mapping, for instance a table of a TOML file.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type or is not allowed.
        """
        try:
            return structure(cls, values)
        except ConfigError as error:
            raise ConfigError(f"client settings: {error}") from error


_SOURCE: Final = re.compile(r"(file|script):/.+|(?!(file|script):)[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}")
_NOT_NEGATIVE: Final = ("explicit_lac_delay_ms", "delete_grace_s")
_POSITIVE: Final = tuple(
    name for name, kind in ClientConfig.__annotations__.items() if kind == "int" and name not in _NOT_NEGATIVE
)
