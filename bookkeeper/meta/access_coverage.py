"""Which bookies of a cluster do not follow its access policy: Java's, and ours of an earlier version."""

from __future__ import annotations

from bookkeeper.access import Mode, decode_policy
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.meta.cluster import Metadata


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
