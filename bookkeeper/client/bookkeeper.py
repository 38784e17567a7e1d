"""Create, open, delete, list. Skeleton: signatures and promises; see the module when it is filled in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.ledger_handle import WriteHandle
from bookkeeper.client.read_handle import ReadHandle
from bookkeeper.ids import LedgerId

if TYPE_CHECKING:
    from bookkeeper.ledger import LedgerMetadata
    from bookkeeper.meta import Metadata
    from bookkeeper.seams import Seams

WhenShortName = Literal["fail", "name_absent"]


class Connecting:
    """What connect() returns: ``await`` it for a BookKeeper to close yourself, or ``async with`` it."""

    def __await__(self) -> Generator[Any, None, BookKeeper]:
        raise NotImplementedError

    async def __aenter__(self) -> BookKeeper:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError


class BookKeeper:
    """A client of one cluster. Belongs to the loop that made it."""

    metadata_store: Metadata
    """The cluster's metadata, for tools: ledgers, bookies, cookies, and ``.own(path)``."""

    @classmethod
    def connect(cls, uri: str, *, config: ClientConfig | None = None, seams: Seams | None = None) -> Connecting:
        """Connect to the cluster at a metadata URI (embedded:, sqlite:, memory:, zk+…:).

        Raises: ConfigError (the URI), NoClusterError, MetadataUnavailableError.
        """
        raise NotImplementedError

    async def create_ledger(
        self,
        *,
        ensemble: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        password: bytes = b"",
        digest: str = "crc32c",
        custom_metadata: Mapping[str, bytes] | None = None,
        ledger_id: int | None = None,
        when_short: WhenShortName = "fail",
    ) -> WriteHandle:
        """Create a ledger and return its writer.

        ``when_short="name_absent"``: with fewer bookies up than the ensemble needs, a known but absent one is named,
        as long as an ack quorum of at least two is up. Raises: NotEnoughBookiesError, LedgerExistsError (with
        ``ledger_id``), ConfigError, MetadataUnavailableError.
        """
        raise NotImplementedError

    async def open_ledger(self, ledger_id: int, password: bytes = b"", *, recovery: bool = True) -> ReadHandle:
        """Open a ledger for reading; with ``recovery`` (default) fence its writer and close it first if it is open.

        Raises: NoSuchLedgerError, UnauthorizedError, RecoveryInconclusiveError.
        """
        raise NotImplementedError

    async def delete_ledger(self, ledger_id: int) -> None:
        """Delete a ledger for ever (M6). Its bookies reclaim the space later. Raises: NoSuchLedgerError."""
        raise NotImplementedError

    def list_ledgers(self) -> AsyncIterator[LedgerId]:
        """Ids of all ledgers, ascending within a page of the store."""
        raise NotImplementedError

    async def metadata(self, ledger_id: int) -> LedgerMetadata:
        """A ledger's metadata, read now. Raises: NoSuchLedgerError."""
        raise NotImplementedError

    async def close(self) -> None:
        """Abandon handles that are still open, close connections and, for ``embedded:``, stop its bookies."""
        raise NotImplementedError
