"""What an operator may set of the gateway's tree, uploads and owner. Defaults stand here and nowhere else.

Of its port: :mod:`bookkeeper.gateways.config`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import require, require_range
from bookkeeper.ids import Address
from bookkeeper.leases.lease import LEASE_S
from bookkeeper.settings import default_of
from spark_wal.webhdfs.growing_paths import problem_of

MIB: Final = 1024 * 1024

DEFAULT_LISTEN: Final = Address("127.0.0.1", 9870)
"""Hadoop's port for WebHDFS, on this machine only, where the gateway needs no authentication."""

KEEP_S: Final = 24 * 3600.0
"""Seconds for which an untouched temporary file stays."""

GROWING: Final = ("*.inprogress", "eventlog_v2_*/**")
"""The paths of files that grow: Spark's event logs, as its writer of one file and its writer of several name them."""

PARK_S: Final = 20.0
"""Seconds that a request waits for an owner; well below the 60 s after which clients give up reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Limits of uploads, in bytes."""

    inline_size: int = 128 * 1024
    """A file up to this size goes into its journal record."""
    spill_size: int = MIB
    """An upload that grows beyond this is streamed to a blob from then on."""
    budget: int = 256 * MIB
    """The most that all uploads together may hold in memory."""
    file_bytes_max: int = 64 << 30
    """The largest file that is accepted."""

    def __post_init__(self) -> None:
        require_range(self, "file_bytes_max", above=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerConfig:
    """The settings of the owner."""

    limits: UploadLimits = field(default_factory=UploadLimits)
    snapshot_records: int = 50_000
    """A snapshot is taken after so many records ..."""
    snapshot_bytes: int = 64 << 20
    """... or so many bytes of records, whichever comes first ..."""
    snapshot_records_least: int = 8_000
    """... or after so many records if they are as long as the last snapshot: a start replays them, in half a second."""
    delete_delay_s: float = 60.0
    """Seconds for which the bytes of a removed file stay, for readers in the middle of it."""
    record_bytes_max: int = 512 * 1024
    """The longest record in bytes: an inline file and its paths, with room to spare."""
    memory_max: int | None = None
    """Bytes of memory that files, directories and the bytes of small files may take, about; None: no limit."""
    temporary_keep_s: float = KEEP_S
    """Seconds for which an untouched temporary file of Spark's stays; 0: for ever."""
    growing: tuple[str, ...] = GROWING
    """The patterns of the paths of files that grow (see ``files.growing_paths``)."""
    growing_sync_s: float = 1.0
    """Seconds after which received bytes of a file that grows begin to become durable."""

    def __post_init__(self) -> None:
        stays = 0 <= self.temporary_keep_s < math.inf
        require(
            stays,
            "an untouched temporary file stays for a number of seconds, or for ever (0), not for "
            f"{self.temporary_keep_s} s",
        )
        require_range(self, "growing_sync_s", above=0)
        for pattern in self.growing:
            problem = problem_of(pattern)
            require(problem is None, problem or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The settings of a gateway."""

    owner: OwnerConfig = field(default_factory=OwnerConfig)
    quotas: Mapping[str, int | None] = field(default_factory=dict)
    """The most bytes below a path (a checkpoint's root); None removes an earlier quota."""
    names_quotas: Mapping[str, int | None] = field(default_factory=dict)
    """The most files and directories at and below a path; None removes an earlier quota."""
    park_s: float = PARK_S
    """Seconds that a request waits for an owner."""
    lease_s: float = LEASE_S
    """Seconds for which an owner may answer after the start of its last renewal."""
    metadata_session_s: float = default_of(ClientConfig, "metadata_session_ms") / 1000
    """Seconds without contact after which the metadata store ends the gateway's session."""

    def __post_init__(self) -> None:
        require_range(self, "lease_s", above=0)
