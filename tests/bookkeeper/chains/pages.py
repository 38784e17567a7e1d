"""A record for tests: a page with a text and an owner, on a shelf in memory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Self

from bookkeeper.chains.chain_node import ChainNode
from bookkeeper.meta.stores.memory import Fate, MemoryCluster


@dataclass(frozen=True, slots=True)
class Page:
    text: str = ""
    epoch: int = 0
    owner: str = ""
    nonce: str = ""

    def claim(self, owner: str, nonce: str) -> Self:
        return replace(self, epoch=self.epoch + 1, owner=owner, nonce=nonce)

    def writing(self, text: str) -> Page:
        return replace(self, text=text)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Page:
        return cls(**json.loads(data))


class Shelf:
    """One path of one store; a session for each who asks."""

    def __init__(self) -> None:
        self.metadata = MemoryCluster()

    def record(self) -> ChainNode[Page]:
        return ChainNode(self.metadata.connect(), "/chains/page", Page.decode, Page.encode)


class LostWrite:
    """The n-th write is done, and its reply is lost."""

    def __init__(self, n: int) -> None:
        self.left = n

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind in ("set", "create"):
            self.left -= 1
            return Fate(reply_lost=self.left == -1)
        return Fate()
