"""A cursor's node, held by the owner who claimed it: acknowledgements gathered while a write is under way share the
next write, and everybody who waits for one learns how it went.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bookkeeper.amounts import counted
from bookkeeper.chains.owned_node import ClaimLostError, OwnedNode
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, MetadataConflictError, NoSuchKeyError
from segments.cursors.cursor_node import CursorNode
from segments.cursors.cursor_state import RANGES_MAX, UNSAVED_PER_RANGE, Acknowledgement, CursorState
from segments.error_translation import stream_error
from segments.errors import CursorConflictError, CursorFullError, CursorNotFoundError, StreamClosedError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)

SPARE: Final = 0.9
"""A cursor counts as full no more when it has this share of its ranges, or less."""


class CursorOwner:
    """The right to move one cursor, until another owner claims it."""

    def __init__(
        self,
        node: CursorNode,
        owned: OwnedNode[CursorState],
        now_ms: Callable[[], int],
        *,
        ranges_max: int = RANGES_MAX,
        save_every_s: float = 1.0,
        shared: bool = False,
    ) -> None:
        """``shared``: others act for the same owner, and may change the node between two steps of this one."""
        self._node = node
        self._owned = owned
        self._now_ms = now_ms
        self._ranges_max = ranges_max
        self._save_every_s = save_every_s
        self._tasks = Tasks(f"cursor {node.name} of stream {node.stream}")
        self._step = asyncio.Lock()
        self._changes: list[Acknowledgement] = []
        """To be written next."""
        self._waiting: dict[int, asyncio.Future[None]] = {}
        """Those of them for which someone waits, by their places in the list."""
        self._timer: asyncio.TimerHandle | None = None
        self._saving = False
        self._is_full = False
        self._closed = False
        self._shared = shared
        self.failed: StreamError | None = None
        """Why acknowledgements that nobody waits for could not be written; the next flush raises it."""
        self.refused = 0
        """Acknowledgements that would have exceeded the bound."""

    @classmethod
    async def claim(
        cls, node: CursorNode, owner: str, nonce: str, check: Callable[[CursorState], None] | None = None
    ) -> OwnedNode[CursorState]:
        """Take the next epoch. ``check`` raises to refuse the node as it is when it is taken.

        Raises: CursorNotFoundError, StreamCorruptError, StreamMetadataError. And what ``check`` raises.
        """
        with _worded(node, "claiming"):
            return await OwnedNode.claim(node, owner, nonce, check)

    @classmethod
    async def resume(
        cls,
        node: CursorNode,
        epoch: int,
        nonce: str,
        now_ms: Callable[[], int],
        *,
        ranges_max: int,
        save_every_s: float,
    ) -> CursorOwner:
        """Act for the owner that claimed this epoch.

        Raises:
            CursorConflictError: another owner has the cursor. CursorNotFoundError, StreamCorruptError,
            StreamMetadataError.
        """
        with _worded(node, "reading"):
            state, version, created_txn = await node.read_created()
            if (state.epoch, state.nonce) != (epoch, nonce):
                raise ClaimLostError(f"epoch {state.epoch} has taken {node.path} over from {epoch}", state)
        owned = OwnedNode(node, state, version, created_txn)
        return cls(node, owned, now_ms, ranges_max=ranges_max, save_every_s=save_every_s, shared=True)

    @property
    def state(self) -> CursorState:
        """The node as this owner last read or wrote it."""
        return self._owned.value

    async def change(self, step: Callable[[CursorState], CursorState]) -> CursorState:
        """Replace the node by ``step`` of it.

        Raises:
            CursorConflictError: another owner has the cursor. StreamMetadataError: the outcome is unknown. And what
            ``step`` raises.
        """
        self._ensure_open()
        with _worded(self._node, "changing"):
            async with self._step:
                while True:
                    try:
                        await self._owned.step(step)
                    except MetadataConflictError:
                        if not self._shared:
                            raise
                    else:
                        return self.state

    async def acknowledge(self, changes: Sequence[Acknowledgement]) -> None:
        """Mark records done, and wait until that is stored.

        Raises:
            CursorFullError: there would be too many ranges; those that fit were made. And as change.
        """
        self._ensure_open()
        loop = asyncio.get_running_loop()
        waiting = []
        for each in changes:
            future: asyncio.Future[None] = loop.create_future()
            future.add_done_callback(_retrieve_error)
            self._waiting[len(self._changes)] = future
            self._changes.append(each)
            waiting.append(future)
        self._save()
        if waiting:
            await asyncio.wait(waiting)
            for future in waiting:
                future.result()

    def acknowledge_later(self, changes: Sequence[Acknowledgement]) -> None:
        """Mark records done, and store that within ``save_every_s``, or with the next change that is waited for.

        Raises:
            CursorFullError: too many were refused, and wait for the records in between to be acknowledged.
        """
        self._ensure_open()
        if len(self._changes) + len(changes) > UNSAVED_PER_RANGE * self._ranges_max:
            raise self._full()
        self._changes += changes
        if self._timer is None and not self._saving:
            self._timer = asyncio.get_running_loop().call_later(self._save_every_s, self._save)

    async def flush(self) -> None:
        """Wait until everything is stored.

        Raises:
            CursorFullError: something is refused, and stays so until the records in between are acknowledged. And as
            change.
        """
        await self.acknowledge([Acknowledgement(self.state.mark)])
        failed, self.failed = self.failed, None
        if failed is not None:
            raise failed

    async def close(self) -> None:
        """Store what is not, and let go of the cursor. Idempotent. Raises: as flush."""
        if self._closed:
            return
        try:
            await self.flush()
            await self.change(CursorState.release)
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Stop without storing anything more. Idempotent."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()
        self._settle(self._waiting, StreamClosedError("the cursor was closed", stream=self._node.stream))

    def _ensure_open(self) -> None:
        if self._closed:
            text = f"cursor {self._node.name} of stream {self._node.stream} is closed: open it again"
            raise StreamClosedError(text, stream=self._node.stream)

    # -- writing ------------------------------------------------------------------------------------------

    def _save(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._saving and not self._closed:
            self._saving = True
            self._tasks.start(self._save_all(), "save")

    async def _save_all(self) -> None:
        try:
            while self._changes:
                changes, self._changes = self._changes, []
                waiting, self._waiting = self._waiting, {}
                made: list[bool] = []
                step = self._marking(changes, made)
                try:
                    if step(self.state) is not self.state:
                        await self.change(step)
                except StreamError as error:
                    self._settle(waiting, error)
                    self._on_failed([each for i, each in enumerate(changes) if i not in waiting], error)
                    return
                except BaseException:
                    self._settle(waiting, StreamClosedError("the cursor was closed", stream=self._node.stream))
                    raise
                self._on_made(changes, waiting, made)
                if not self._waiting:  # what was refused waits for the next acknowledgement
                    return
        finally:
            self._saving = False

    def _marking(self, changes: Sequence[Acknowledgement], made: list[bool]) -> Callable[[CursorState], CursorState]:
        """The step that makes ``changes``; ``made`` tells then which of them fit."""

        def step(state: CursorState) -> CursorState:
            after, made[:] = state.acknowledge(changes, self._now_ms(), limit=self._ranges_max)
            return after

        return step

    def _on_made(
        self, changes: Sequence[Acknowledgement], waiting: dict[int, asyncio.Future[None]], made: Sequence[bool]
    ) -> None:
        refused = [i for i, done in enumerate(made) if not done]
        if refused:
            self.refused += len(refused)
            if not self._is_full:
                self._is_full = True
                _log.warning("%s", self._full())
        else:
            self._is_full = self._is_full and len(self.state.ranges) > SPARE * self._ranges_max
            if isinstance(self.failed, CursorFullError):
                self.failed = None
        for i in refused:
            if (future := waiting.pop(i, None)) is not None:
                if not future.done():
                    future.set_exception(self._full())
            else:
                self.failed = self._full()
                self._changes.append(changes[i])
        self._settle(waiting, None)

    def _on_failed(self, changes: Sequence[Acknowledgement], error: StreamError) -> None:
        """Changes that nobody waits for stay, if they may be made later."""
        if not changes:
            return
        self.failed = error
        if error.retryable and not self._closed:
            shifted = {i + len(changes): future for i, future in self._waiting.items()}
            self._changes, self._waiting = [*changes, *self._changes], shifted
            self._timer = asyncio.get_running_loop().call_later(self._save_every_s, self._save)
        else:
            _log.warning("acknowledgements of cursor %s are not stored: %s", self._node.name, error)

    @staticmethod
    def _settle(waiting: dict[int, asyncio.Future[None]], error: StreamError | None) -> None:
        for future in waiting.values():
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _full(self) -> CursorFullError:
        return CursorFullError(
            f"cursor {self._node.name} of stream {self._node.stream} has "
            f"{counted(self._ranges_max, 'separate range')} of "
            "acknowledged records, and takes no more: acknowledge the records in between",
            stream=self._node.stream,
        )


def _retrieve_error(future: asyncio.Future[None]) -> None:
    """Only the first failure is raised; asyncio does not report the others, nor those of a caller who went away."""
    if not future.cancelled():
        future.exception()


@contextmanager
def _worded(node: CursorNode, what: str) -> Iterator[None]:
    name, stream = node.name, node.stream
    try:
        yield
    except ClaimLostError as error:
        found = error.found
        owner = found.owner if isinstance(found, CursorState) else None
        raise CursorConflictError(
            f"cursor {name} of stream {stream} was taken over{f' by {owner}' if owner else ''}: open it again",
            stream=stream,
            owner=owner,
        ) from error
    except MetadataConflictError as error:
        raise CursorConflictError(f"cursor {name} of stream {stream} was changed by someone else") from error
    except NoSuchKeyError as error:
        raise CursorNotFoundError(f"cursor {name} of stream {stream} was deleted", stream=stream) from error
    except BookKeeperError as error:
        raise stream_error(error, f"{what} cursor {name} of stream {stream}", stream) from error
