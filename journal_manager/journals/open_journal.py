"""The functions of the front door: open a journal by its address."""

from __future__ import annotations

from journal_manager.journals.backend import JournalReader, JournalWriter, NamespaceInfo
from journal_manager.journals.journal_uri import parse_uri
from journal_manager.journals.registry import backend_for
from journal_manager.snapshots.snapshots import SnapshotStore


async def open_writer(
    uri: str, *, namespace: NamespaceInfo | None = None, owner: str = "", create: bool = True, **options: object
) -> JournalWriter:
    """Claim the journal's next epoch, fence the former writer, and recover. Most callers want ``EditLog.open``.

    ``namespace`` is checked against the journal's (None: not checked). Raises as ``Backend.open_writer``.
    """
    parsed = parse_uri(uri)
    return await backend_for(parsed).open_writer(parsed, namespace, options, owner=owner, create=create)


async def open_reader(uri: str, *, namespace: NamespaceInfo | None = None, **options: object) -> JournalReader:
    """Open for reading, without disturbing a writer. Raises as ``Backend.open_reader``."""
    parsed = parse_uri(uri)
    return await backend_for(parsed).open_reader(parsed, namespace, options)


async def open_snapshots(uri: str, **options: object) -> SnapshotStore:
    """Open the snapshots that are kept beside the journal at ``uri``."""
    parsed = parse_uri(uri)
    return await backend_for(parsed).open_snapshots(parsed, options)


async def format_journal(
    uri: str, *, namespace: NamespaceInfo | None = None, force: bool = False, **options: object
) -> None:
    """Make an empty journal. Raises JournalExistsError if there are edits and not ``force``."""
    parsed = parse_uri(uri)
    await backend_for(parsed).format(parsed, namespace or NamespaceInfo(), options, force=force)


async def has_data(uri: str, **options: object) -> bool:
    """Whether ``format_journal`` would destroy something."""
    parsed = parse_uri(uri)
    return await backend_for(parsed).has_data(parsed, options)
