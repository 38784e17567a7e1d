"""Bugs, planted to test the simulated worlds: worlds that do not find them are too weak.

Each replaces a piece of the name node for as long as a world runs. The name node knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.testing.patches import Replacements, replaced
from examples.namenode_sim import image, name_node
from examples.namenode_sim.errors import ReplicaNotActiveError
from examples.namenode_sim.name_node import NameNode, NameNodeRole
from examples.namenode_sim.namespace import HdfsNamespace
from examples.namenode_sim.retry_cache import RetryCache


@dataclass(frozen=True, slots=True)
class NameNodeBug:
    """One planted bug."""

    what: str
    within: int
    """In so many worlds it must be found."""
    replacements: Callable[[], Replacements]

    def planted(self) -> AbstractContextManager[None]:
        """The bug, for as long as a block runs."""
        return replaced(self.replacements())


def _answers_before_durable() -> Replacements:
    async def settled(self: NameNode, log: object, txid: int) -> None:
        """Durable or not."""

    return {(NameNode, "_settled"): settled}


def _answers_though_fenced() -> Replacements:
    submit = NameNode.submit

    async def answers(self: NameNode, request: Any) -> int:
        try:
            return await submit(self, request)
        except ReplicaNotActiveError:
            if self.role is NameNodeRole.FENCED:
                return self.namespace.txid
            raise

    return {(NameNode, "submit"): answers}


def _looks_without_asking() -> Replacements:
    async def look(self: NameNode, path: str) -> dict[str, Any] | None:
        self._active_log()
        inode = self.namespace.find(path)
        return None if inode is None else image.describe(path, inode)

    return {(NameNode, "look"): look}


def _requests_forgotten() -> Replacements:
    return {(RetryCache, "done"): lambda self, client_id, call_id: None}


def _requests_not_in_image() -> Replacements:
    read = image.read_image

    def forgetful(chunks: Any) -> HdfsNamespace:
        namespace = read(chunks)
        namespace.requests = RetryCache()
        return namespace

    return {(name_node, "read_image"): forgetful}


def _memory_kept() -> Replacements:
    stand_by = NameNode._stand_by

    async def keeping(self: NameNode) -> None:
        former = self.namespace
        await stand_by(self)
        self.namespace = former

    async def restore(self: NameNode) -> None:
        """There is something in memory already."""

    return {(NameNode, "_stand_by"): keeping, (NameNode, "_restore"): restore}


def _image_ahead() -> Replacements:
    read = image.read_image

    def ahead(chunks: Any) -> HdfsNamespace:
        namespace = read(chunks)
        namespace.txid += 1
        return namespace

    return {(name_node, "read_image"): ahead}


def _tail_left_unread() -> Replacements:
    async def catch_up(self: NameNode, log: Any) -> None:
        self.namespace.txid = log.recovery.last_txid

    return {(NameNode, "_catch_up"): catch_up}


BUGS: Final = {
    "answers-before-durable": NameNodeBug(
        "Requests are answered before their edits are durable.", 20, _answers_before_durable
    ),
    "answers-though-fenced": NameNodeBug("A replica that was overtaken goes on answering.", 20, _answers_though_fenced),
    "looks-without-asking": NameNodeBug(
        "What is there is shown without asking the journal who owns it.", 20, _looks_without_asking
    ),
    "requests-forgotten": NameNodeBug("A repeated request is done again.", 20, _requests_forgotten),
    "requests-not-in-image": NameNodeBug(
        "A checkpoint does not hold the requests that were done.", 40, _requests_not_in_image
    ),
    "memory-kept": NameNodeBug("A replica that was overtaken stands by with what it has in memory.", 20, _memory_kept),
    "image-ahead": NameNodeBug("A checkpoint is taken for one edit later than it is.", 20, _image_ahead),
    "tail-left-unread": NameNodeBug(
        "Who takes over does not read what the standby has not read yet.", 20, _tail_left_unread
    ),
}
"""Name -> bug."""
