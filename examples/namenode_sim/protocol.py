"""What clients and replicas say to each other: one line of JSON for a question, one for the answer (pure).

{"ask": "create", "arguments": {"path": "/a"}, "client": "<hex>", "call": 7}   a request
{"ask": "look", "arguments": {"path": "/a"}}                                   what is there
{"ask": "status" | "digest" | "become_active" | "become_standby"}              for the operator

{"answer": ...}       done
{"refused": "..."}    it cannot be done; asking again is of no use
{"elsewhere": "..."}  this replica is not the active one, or not any more: ask the other
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from examples.namenode_sim.decisions import ClientRequest
from examples.namenode_sim.errors import NamespaceError, ReplicaNotActiveError, RequestError
from journal_manager.hdfs.hdfs_ops import NO_CALL

LINE_BYTES: Final = 1 << 20
"""The longest line."""
LOOK: Final = "look"


@dataclass(frozen=True, slots=True)
class Question:
    """One line from a client."""

    ask: str
    arguments: dict[str, Any] = field(default_factory=dict)
    client: str = ""
    """Hexadecimal."""
    call: int = NO_CALL

    def request(self) -> ClientRequest:
        """The question as a request. Raises RequestError."""
        try:
            return ClientRequest(self.ask, self.arguments, bytes.fromhex(self.client), self.call)
        except ValueError as error:
            raise RequestError(f"{self.client!r} is no client's id") from error

    def encode(self) -> bytes:
        line = {"ask": self.ask, "arguments": self.arguments, "client": self.client, "call": self.call}
        return json.dumps(line).encode() + b"\n"


def decode_question(line: bytes) -> Question:
    """Raises: RequestError: it is no question."""
    try:
        found = Question(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise RequestError(f"this is no question: {line[:100]!r}") from error
    if not isinstance(found.ask, str) or not isinstance(found.arguments, dict) or not isinstance(found.call, int):
        raise RequestError(f"this is no question: {line[:100]!r}")
    return found


def encode_answer(answer: object) -> bytes:
    return json.dumps({"answer": answer}).encode() + b"\n"


def encode_error(error: NamespaceError | ReplicaNotActiveError) -> bytes:
    kind = "refused" if isinstance(error, NamespaceError) else "elsewhere"
    return json.dumps({kind: str(error)}).encode() + b"\n"


def decode_answer(line: bytes) -> Any:
    """What was answered.

    Raises:
        NamespaceError: it was refused. ReplicaNotActiveError: this replica is not the active one, or has gone.
    """
    if not line.endswith(b"\n"):
        raise ReplicaNotActiveError("the replica has gone in the middle of its answer")
    found = json.loads(line)
    if "refused" in found:
        raise NamespaceError(found["refused"])
    if "elsewhere" in found:
        raise ReplicaNotActiveError(found["elsewhere"])
    return found["answer"]
