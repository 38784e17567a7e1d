"""A client of the name node: it asks until it is answered, under one id, at whichever replica is active."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from bookkeeper.launchers.machine_speed import stretch
from examples.namenode_sim.errors import NoAnswerError, ReplicaNotActiveError
from examples.namenode_sim.protocol import LINE_BYTES, LOOK, Question, decode_answer

ANSWER_S: Final = 2.0
"""How long one replica may take before another is asked, on a machine of the reference's speed."""
_PAUSE_S: Final = 0.1


class Conversation:
    """A connection to one replica. One question at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, question: Question, timeout_s: float = ANSWER_S) -> Any:
        """Raises: NamespaceError: refused. ReplicaNotActiveError: not the active one, not there, or too slow."""
        try:
            async with asyncio.timeout(timeout_s * stretch()):
                if self._streams is None:
                    self._streams = await asyncio.open_unix_connection(self._path, limit=LINE_BYTES)
                reader, writer = self._streams
                writer.write(question.encode())
                await writer.drain()
                line = await reader.readline()
        except (OSError, TimeoutError) as error:
            await self.close()
            raise ReplicaNotActiveError(f"no answer at {self._path}") from error
        except BaseException:
            await self.close()  # an answer may still come, and would be taken for that of the next question
            raise
        if not line:
            await self.close()
        return decode_answer(line)

    async def close(self) -> None:
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class NameNodeClient:
    """Asks the replicas in turn, beginning with the one that answered last."""

    def __init__(self, paths: Sequence[str], client_id: bytes, *, patience_s: float = 60.0) -> None:
        """
        Args:
            paths: the sockets of the replicas.
            client_id: 16 bytes that no other client uses.
            patience_s: how long to ask before giving up.
        """
        self._conversations = [Conversation(path) for path in paths]
        self._client = client_id.hex()
        self._calls = itertools.count(1)
        self._patience_s = patience_s
        self.repeated = 0
        """Requests that were asked for more than once."""

    async def do(self, verb: str, **arguments: Any) -> int:
        """Have something done, once. Returns the id of an edit that it rests on.

        Raises:
            NamespaceError: it cannot be done. NoAnswerError: nobody answered; it may have been done.
        """
        answer = await self._ask(Question(verb, arguments, self._client, next(self._calls)))
        return int(answer)

    async def look(self, path: str) -> dict[str, Any] | None:
        """What is at ``path``; None: nothing. Raises NoAnswerError."""
        found: dict[str, Any] | None = await self._ask(Question(LOOK, {"path": path}))
        return found

    async def _ask(self, question: Question) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s * stretch()
        asked = 0
        while loop.time() < deadline:
            for conversation in list(self._conversations):
                asked += 1
                try:
                    answer = await conversation.ask(question)
                except ReplicaNotActiveError:
                    continue
                finally:
                    self.repeated += asked == 2
                self._conversations.remove(conversation)
                self._conversations.insert(0, conversation)
                return answer
            await asyncio.sleep(_PAUSE_S)
        raise NoAnswerError(f"nobody answered {question.ask} within {self._patience_s * stretch():.0f} s")

    async def close(self) -> None:
        for conversation in self._conversations:
            await conversation.close()
