"""Whether anything that was acknowledged is lost, or was applied twice: the journal is read from its first edit on.

The auditor is a third replica that trusts nobody. It applies every edit strictly, notes each client's request, and in
the end compares its namespace with what the clients were told and with what the replicas have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from examples.namenode_sim.errors import ReplayError
from examples.namenode_sim.image import write_image
from examples.namenode_sim.inodes import DirectoryInode, FileInode
from examples.namenode_sim.name_node import NameNodeRole
from examples.namenode_sim.namespace import HdfsNamespace
from examples.namenode_sim.workload import WarehouseClient
from journal_manager import JournalError, Op
from journal_manager.hdfs import decode_hdfs_op


@dataclass(slots=True)
class NameNodeVerdict:
    """What the comparison found."""

    edits: int = 0
    acknowledged: int = 0
    """Requests that clients were told are done."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    """Replicas whose namespace is not that of the journal."""
    refused: list[str] = field(default_factory=list)
    """What clients ran into."""

    @property
    def good(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, as lines for people."""
        return [*self.lost, *self.doubled, *self.different, *self.refused]


def digest_of(namespace: HdfsNamespace) -> dict[str, Any]:
    """The id of the last edit and the checksum of everything in a namespace, to compare replicas."""
    digest = hashlib.sha256()
    for chunk in write_image(namespace):
        digest.update(chunk)
    return {"txid": namespace.txid, "sha256": digest.hexdigest()}


def may_read_on(role: NameNodeRole, *, unfenced: bool) -> bool:
    """Whether a replica may still come to later edits: not once an edit did not fit.

    Args:
        unfenced: sabotage. One that was overtaken never stands by again.
    """
    return role is not NameNodeRole.FAILED and not (unfenced and role is NameNodeRole.FENCED)


class JournalAuditor:
    """Reads the journal as it grows, and judges."""

    def __init__(self) -> None:
        self.namespace = HdfsNamespace()
        self._requests: dict[tuple[bytes, int], int] = {}
        self._doubled: list[str] = []
        self._broken = self._blind = ""

    def stop(self, why: str) -> None:
        """The journal cannot be read on: an edit was purged before it was read."""
        self._blind = why

    @property
    def ended(self) -> bool:
        """Whether it reads no more: an edit did not fit, or was purged before it was read."""
        return bool(self._broken or self._blind)

    def read(self, edit: Op) -> None:
        """Take the next edit of the journal. After one that does not fit, the rest is not looked at."""
        if self._broken:
            return
        try:
            op = decode_hdfs_op(edit.opcode, edit.body)
            self.namespace.apply(edit.txid, op)
        except (ReplayError, JournalError) as error:
            self._broken = str(error)
            return
        client: bytes | None = getattr(op, "client_id", None)
        if client:
            request = client, op.call_id  # type: ignore[union-attr]
            former = self._requests.setdefault(request, edit.txid)
            if former != edit.txid:
                self._doubled.append(f"the request of edit {former} was applied again by edit {edit.txid}")

    def digest(self) -> dict[str, Any]:
        """As a replica gives it."""
        return digest_of(self.namespace)

    def judge(self, clients: Iterable[WarehouseClient], digests: Mapping[str, Any]) -> NameNodeVerdict:
        """Compare the journal with what the clients were told, and with the replicas' digests at the same edit."""
        found = NameNodeVerdict(edits=self.namespace.txid, doubled=list(self._doubled))
        if self._blind:
            found.refused.append(f"the auditor could not read on: {self._blind}")
            return found
        if self._broken:
            found.doubled.append(f"the journal does not fit itself: {self._broken}")
        for client in clients:
            found.acknowledged += client.acknowledged
            found.refused += client.problems
            self._compare(client, found)
        own = self.digest()
        for name, digest in digests.items():
            if digest != own:
                found.different.append(f"{name} has another namespace than the journal, at edit {digest['txid']}")
        return found

    def _compare(self, client: WarehouseClient, found: NameNodeVerdict) -> None:
        directory = self.namespace.find(client.directory)
        inodes = directory.children if isinstance(directory, DirectoryInode) else {}
        there = {
            f"{client.directory}/{name}": None if inode.client is not None else inode.length
            for name, inode in inodes.items()
            if isinstance(inode, FileInode)
        }
        for path, length in client.expected.items():
            if path not in there:
                found.lost.append(f"{path} was acknowledged, and is not there")
            elif there[path] != length:
                found.lost.append(f"{path} has {there[path]} bytes, and {length} were acknowledged")
        for path in there.keys() - client.expected.keys():
            found.doubled.append(f"{path} is there, and must have been moved or deleted")
