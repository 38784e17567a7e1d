"""Which bookies of a cluster do not follow its access policy: Java's, and ours of an earlier version."""

from __future__ import annotations

import logging
from typing import Final

from bookkeeper.access import Mode, decode_policy
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId, some_of
from bookkeeper.meta.cluster import Metadata

log = logging.getLogger(__name__)

_SHOWN: Final = 10
"""Bookies that a line names at most."""


async def policy_mode(metadata: Metadata) -> Mode | None:
    """The mode of the present policy; None: it cannot be read. Raises: MetadataError: the store does not answer."""
    try:
        found = await metadata.access.read_bytes()
        return decode_policy(found.value).mode if found is not None else Mode.OFF
    except MetadataFormatError:
        return None


async def not_following(metadata: Metadata) -> list[BookieId]:
    """The registered bookies that do not say that they follow the policy. One that is starting has not said it yet.

    Raises: MetadataError.
    """
    return await metadata.access_servers.without_report(sorted(await metadata.bookies.registered()))


async def java_bookies(metadata: Metadata) -> list[BookieId]:
    """The registered bookies that have never published the number of a start, as ours do before they register.

    Raises: MetadataError.
    """
    found = []
    for bookie in sorted(await metadata.bookies.registered()):
        if await metadata.store.exists(metadata.own("boot", bookie)) is None:
            found.append(bookie)
    return found


async def warn_of_java_bookies(metadata: Metadata, mode: Mode) -> None:
    """Say in the log, at the start of a server that follows a policy, which bookies enforce nothing.

    Raises: MetadataError.
    """
    if mode is Mode.OFF or not (found := await java_bookies(metadata)):
        return
    log.warning(
        "the access policy's mode is %s, and bookies of Apache BookKeeper enforce nothing: what is on them is open to "
        "every client that they admit: %s",
        mode,
        some_of(found, _SHOWN),
    )
