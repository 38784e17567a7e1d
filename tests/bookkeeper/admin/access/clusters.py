"""``bk access`` on one cluster, and its metadata as others write them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bookkeeper.meta import Metadata
from bookkeeper.real import system_seams
from tests.bookkeeper.admin.commands import Said, bk


@dataclass(frozen=True)
class Cluster:
    uri: str

    def access(self, *words: object) -> Said:
        """``bk access WORDS``."""
        return bk("access", *words, "-m", self.uri)

    def document(self, *words: object) -> Any:
        """What it answers with ``--json``."""
        return self.access(*words, "--json").document

    def meanwhile(self, work: Callable[[Metadata], Awaitable[None]]) -> None:
        """Have somebody else do something with the metadata."""

        async def run() -> None:
            metadata = await Metadata.connect(self.uri, system_seams())
            try:
                await work(metadata)
            finally:
                await metadata.store.close()

        asyncio.run(run())
