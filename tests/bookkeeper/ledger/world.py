"""A world of one ledger: bookies, a metadata store, a network without manners; a writer and any number of recoveries.

Nothing here decides *when* things happen: a test calls the methods in any order it likes, with any index. The world
may: deliver any message before any other, lose any message (its sender learns only that the connection is gone), stop
and start bookies (which forget nothing), stop a client for good, let a compare-and-set be known late. It checks after
every step what must always hold:

    W1, W2   what is confirmed is in order, and on an ack quorum of the committed write set, with its very bytes
    W3, L3   no last add confirmed on any bookie is beyond what the writer confirmed, until the end is decided
    R11      the end is not below anything that was confirmed
    R8, L2   the end is not below a last add confirmed that anybody could have read before
    R12      the length is the sum of the sizes
    R15, M2  the end never changes, and everyone is told the same one
    R7       every entry of a closed ledger is on an ack quorum of its write set
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bookkeeper.errors import BookieUnavailableError, BookKeeperError, LedgerClosedError, LedgerFencedError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import recovery as rec
from bookkeeper.ledger import write as wri
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig, WriterConfig
from bookkeeper.ledger.ensemble.replan import replan, still_failed
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState, broken_rule
from bookkeeper.ledger.placement import RandomChoice
from bookkeeper.ledger.quorum import QuorumSpec

NEVER_MS = 10**9
"""A deadline that no test reaches: every add must be confirmed once all is well."""

LOST = BookieUnavailableError("connection lost")
FENCED = LedgerFencedError("fenced")


@dataclass(frozen=True)
class Packet:
    """An entry's bytes, as far as they matter: the payload is its size (sizes differ from entry to entry)."""

    entry_id: int
    lac: int
    length: int
    size: int


@dataclass
class Bookie:
    """Keeps everything for ever."""

    up: bool = True
    fenced: bool = False
    packets: dict[int, Packet] = field(default_factory=dict)

    @property
    def lac(self) -> int | None:
        return max((p.lac for p in self.packets.values()), default=None)


@dataclass
class Message:
    """A question on its way to a bookie, or (``reply`` set) what became of it on its way back."""

    client: WriterShell | RecoveryShell
    life: int
    bookie: BookieId
    ask: Callable[[Bookie], Callable[[], None]]
    """Perform it on the bookie; returns what tells the client."""
    failed: Callable[[], None]
    text: str
    reply: Callable[[], None] | None = None


@dataclass
class StoreEffect:
    """A compare-and-set that some client wants; ``perform`` does it and returns how the client is told."""

    client: WriterShell | RecoveryShell
    perform: Callable[[], Callable[[], None]]
    text: str
    report: Callable[[], None] | None = None


class World:
    """See the module."""

    def __init__(self, spec: QuorumSpec, spares: int = 2, *, add_timeout_ms: int = 8_000) -> None:
        self.spec = spec
        self.add_timeout_ms = add_timeout_ms
        names = [BookieId(f"b{n}") for n in range(1, spec.ensemble_size + spares + 1)]
        self.bookies = {name: Bookie() for name in names}
        self.stored = LedgerMetadata.create(spec, names[: spec.ensemble_size])
        self.version = 0
        self.now = 0.0
        self.messages: list[Message] = []
        self.effects: list[StoreEffect] = []
        self.writer = WriterShell(self)
        self.recoveries: list[RecoveryShell] = []
        self.read_lac = -1
        """The highest last add confirmed that some reader saw before the end was decided."""
        self.log: list[str] = []

    # -- what the world may do ------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        self.log.append(text)

    def deliver(self, index: int) -> None:
        """The oldest-or-any message arrives: a question at its bookie, or an answer at its client."""
        message = self.messages.pop(index % len(self.messages))
        client = message.client
        self.note(f"deliver {message.text}{' (reply)' if message.reply else ''}")
        if message.reply is not None:
            if client.alive and client.life_of(message.bookie) == message.life:
                message.reply()
        elif self.bookies[message.bookie].up:
            message.reply = message.ask(self.bookies[message.bookie])
            self.messages.append(message)
        elif client.alive and client.life_of(message.bookie) == message.life:
            message.failed()
        self.check()

    def lose(self, index: int) -> None:
        """A message is lost; its sender learns that much."""
        message = self.messages.pop(index % len(self.messages))
        self.note(f"lose {message.text}{' (reply)' if message.reply else ''}")
        if message.client.alive and message.client.life_of(message.bookie) == message.life:
            message.failed()
        self.check()

    def store_step(self, index: int) -> None:
        """A client's compare-and-set is performed, or (later) its client hears of it."""
        effect = self.effects[index % len(self.effects)]
        if not effect.client.alive:
            self.effects.remove(effect)
        elif effect.report is None:
            self.note(f"store: {effect.text}")
            effect.report = effect.perform()
        else:
            self.note(f"told: {effect.text}")
            self.effects.remove(effect)
            effect.report()
        self.check()

    def flip(self, index: int) -> None:
        """A bookie stops, or starts again with everything it had."""
        name = list(self.bookies)[index % len(self.bookies)]
        bookie = self.bookies[name]
        bookie.up = not bookie.up
        self.note(f"{name} is {'up' if bookie.up else 'down'}")
        if bookie.up and self.writer.alive:
            self.writer.perform(self.writer.machine.on_spares_changed(self.now))
        self.check()

    def tick(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        clients: list[WriterShell | RecoveryShell] = [self.writer, *self.recoveries]
        for client in clients:
            if client.alive and client.wake_at is not None and self.now >= client.wake_at:
                client.wake_at = None
                client.tick()
        self.check()

    def look(self, index: int) -> None:
        """A reader hears a bookie's last add confirmed."""
        name = list(self.bookies)[index % len(self.bookies)]
        lac = self.bookies[name].lac
        if lac is not None and not self.stored.is_closed:
            self.read_lac = max(self.read_lac, lac)

    def recover(self) -> RecoveryShell:
        """Another client begins to recover."""
        shell = RecoveryShell(self, len(self.recoveries))
        self.recoveries.append(shell)
        self.note(f"{shell.name} begins")
        shell.perform(shell.machine.start(self.now))
        self.check()
        return shell

    # -- the store ------------------------------------------------------------------------------------------

    def write(self, new: LedgerMetadata) -> LedgerMetadata:
        if new != self.stored:
            broken = broken_rule(self.stored, new)
            assert not broken, broken
            self.stored = new
            self.version += 1
            if new.is_closed:
                self.check_end()
        return self.stored

    def send(self, message: Message) -> None:
        self.messages.append(message)

    # -- what must hold -------------------------------------------------------------------------------------

    def check(self) -> None:
        confirmed = self.writer.machine.progress.last_add_confirmed
        if self.stored.is_closed:
            assert self.stored.last_entry >= confirmed, (
                f"R11: closed at {self.stored.last_entry}, {confirmed} confirmed"
            )
        else:
            for name, bookie in self.bookies.items():
                lac = bookie.lac
                assert lac is None or lac <= confirmed, f"W3/L3: {name} says {lac}, confirmed is {confirmed}"
        for shell in self.recoveries:
            if shell.result is not None:
                ends = [(m.last_entry, m.length) for m in (shell.result, self.stored)]
                assert ends[0] == ends[1], f"R15: {shell.name} says {ends[0]}, stored is {ends[1]}"

    def check_end(self) -> None:
        end, sizes = self.stored.last_entry, self.writer.sizes
        assert end < len(sizes), f"closed at {end}, only {len(sizes)} were added"
        assert self.stored.length == sum(sizes[: end + 1]), f"R12: length {self.stored.length} at {end}, sizes {sizes}"
        assert end >= self.read_lac, f"R8/L2: closed at {end}, a reader saw {self.read_lac}"
        for entry in range(end + 1):
            holders = self.holders(entry, self.stored)
            assert self.spec.is_acknowledged(len(holders)), f"R7: entry {entry} of {end} is on {holders} only"

    def holders(self, entry: int, metadata: LedgerMetadata) -> list[BookieId]:
        """Members of the write set that have the right bytes."""
        right = (sum(self.writer.sizes[: entry + 1]), self.writer.sizes[entry])
        found = []
        for name in metadata.write_set(entry):
            packet = self.bookies[name].packets.get(entry)
            if packet is not None:
                assert (packet.length, packet.size) == right, f"L6: {name} has {packet}"
                found.append(name)
        return found

    # -- the end of all faults ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything is up, nothing is lost any more: what was begun must end (V1, V2)."""
        for bookie in self.bookies.values():
            bookie.up = True
        machine = self.writer.machine
        must_confirm = self.writer.alive and machine.error is None and self.add_timeout_ms >= NEVER_MS
        for _ in range(10_000):
            if self.messages:
                self.deliver(0)
            elif self.effects:
                self.store_step(0)
            elif self.writer.alive and self.writer.lost:
                self.writer.bookie_returns(0)
            elif self.is_settled():
                undisturbed = must_confirm and not self.recoveries
                assert not undisturbed or machine.error is None, f"all is well, and yet: {machine.error}"
                return
            else:
                self.tick(0.3)
        raise AssertionError("V1/V2: it does not end: " + repr(self))

    def is_settled(self) -> bool:
        machine = self.writer.machine
        all_confirmed = machine.progress.next_entry == machine.progress.last_add_confirmed + 1
        idle = not self.writer.alive or machine.error is not None or all_confirmed
        return idle and all(s.result or s.error or not s.alive for s in self.recoveries)

    def __repr__(self) -> str:
        return "\n".join(
            [repr(self.writer.machine), *(repr(s.machine) for s in self.recoveries), repr(self.stored), *self.log[-60:]]
        )


class WriterShell:
    """Performs a writer's effects in this world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alive = True
        self.machine = wri.LedgerWriter(world.stored, WriterConfig(add_timeout_ms=world.add_timeout_ms))
        self.sizes: list[int] = []
        self.packets: dict[int, Packet] = {}
        self.confirmed: list[int] = []
        self.failed: list[int] = []
        self.lives: dict[BookieId, int] = {}
        self.lost: list[BookieId] = []
        self.wake_at: float | None = None
        self.missing: set[tuple[BookieId, int]] = set()

    def life_of(self, bookie: BookieId) -> int:
        return self.lives.get(bookie, 0)

    def add(self, count: int) -> None:
        if not self.alive or self.machine.error is not None:
            return
        first = len(self.sizes)
        sizes = [e % 7 + 1 for e in range(first, first + count)]
        self.sizes += sizes
        self.world.note(f"add {first}..{first + count - 1}")
        got, effects = self.machine.add(sizes, self.world.now)
        assert got == first
        self.perform(effects)
        self.world.check()

    def close(self) -> None:
        if self.alive and self.machine.error is None:
            self.world.note("the writer closes")
            self.perform(self.machine.close(self.world.now))

    def tick(self) -> None:
        self.perform(self.machine.on_tick(self.world.now))

    def bookie_returns(self, index: int) -> None:
        """The life of a bookie that was lost is checked (W10b)."""
        bookie = self.lost[index % len(self.lost)]
        if bookie not in self.machine.failed_bookies:
            self.lost.remove(bookie)  # it left the ensemble: the watch is over
        elif self.world.bookies[bookie].up:
            self.world.note(f"{bookie} is back")
            self.lost.remove(bookie)
            self.lives[bookie] = self.life_of(bookie) + 1
            self.perform(self.machine.on_bookie_returned(bookie, self.world.stored, self.world.now))

    def perform(self, effects: list[wri.Effect]) -> None:
        for effect in effects:
            self.world.note(f"  writer: {effect}")
            match effect:
                case wri.Encode(first, count, lac, length):
                    for entry in range(first, first + count):
                        length += self.sizes[entry]
                        self.packets[entry] = Packet(entry, lac, length, self.sizes[entry])
                case wri.SendAdds(bookie, first, count, position):
                    assert bookie == self.machine.metadata.last_fragment.ensemble[position]
                    for entry in self.world.spec.stripe(position, first, count):
                        self._send(bookie, self.packets[entry])
                case wri.Confirm(first, count):
                    for entry in range(first, first + count):
                        self._confirm(entry)
                case wri.FailAdds(first, count):
                    self.failed += range(first, first + count)
                case wri.Release(upto):
                    self.packets = {e: p for e, p in self.packets.items() if e > upto}
                case wri.WakeAt(time):
                    self.wake_at = time
                case wri.WatchIncarnation(bookie):
                    self.lives[bookie] = self.life_of(bookie) + 1
                    if bookie not in self.lost:
                        self.lost.append(bookie)
                case wri.ChangeEnsemble():
                    self.world.effects.append(StoreEffect(self, lambda e=effect: self._change(e), f"{effect}"))  # type: ignore[misc]
                case wri.CloseMetadata(last, length):
                    self.world.effects.append(
                        StoreEffect(self, lambda a=last, n=length: self._close(a, n), f"{effect}")  # type: ignore[misc]
                    )
                case wri.PublishLac(_, bookies):
                    self._publish(bookies)
                case wri.MarkMissing(bookie, first, last):
                    self.missing |= {(bookie, e) for e in range(first, last + 1)}

    def _send(self, bookie: BookieId, packet: Packet) -> None:
        def ask(server: Bookie) -> Callable[[], None]:
            if server.fenced:
                return lambda: self.perform(self.machine.on_bookie_failed(bookie, FENCED, self.world.now))
            server.packets[packet.entry_id] = packet
            return lambda: self.perform(self.machine.on_acks(bookie, packet.entry_id, 1, self.world.now))

        def failed() -> None:
            self.perform(self.machine.on_bookie_failed(bookie, LOST, self.world.now))

        life = self.life_of(bookie)
        self.world.send(Message(self, life, bookie, ask, failed, f"add {packet.entry_id} to {bookie}"))

    def _publish(self, bookies: tuple[BookieId, ...]) -> None:
        if (lac := self.machine.lac_to_publish()) is not None:
            self.machine.on_lac_published(lac)

    def _confirm(self, entry: int) -> None:
        assert entry == len(self.confirmed), f"W2: {entry} confirmed after {self.confirmed[-3:]}"
        assert not self.failed, f"W6: {entry} confirmed after {self.failed}"
        self.confirmed.append(entry)
        holders = self.world.holders(entry, self.world.stored)
        assert self.world.spec.is_acknowledged(len(holders)), (
            f"W1: {entry} confirmed, on {holders} of {self.world.stored}"
        )

    def _change(self, change: wri.ChangeEnsemble) -> Callable[[], None]:
        """A compare-and-set loop, all at once; its client hears of it later."""
        world = self.world
        candidates = [name for name, bookie in world.bookies.items() if bookie.up]
        gone = still_failed(world.stored, change.failed)
        members = RandomChoice().replace(world.spec, world.stored.last_fragment.ensemble, gone, candidates)
        reason = wri.ChangeFailure.NO_SPARE
        if members:
            try:
                new = world.write(replan(world.stored, change.first_entry, members))
                return lambda: self.perform(self.machine.on_ensemble_changed(new, world.now))
            except LedgerFencedError:
                reason = wri.ChangeFailure.IN_RECOVERY
            except LedgerClosedError:
                reason = wri.ChangeFailure.CLOSED
        return lambda: self.perform(self.machine.on_change_failed(reason, world.now))

    def _close(self, last: int, length: int) -> Callable[[], None]:
        world = self.world
        try:
            new = world.write(world.stored.close(last, length))
        except BookKeeperError as e:
            error = e
            return lambda: self.perform(self.machine.on_close_failed(error, world.now))
        return lambda: self.perform(self.machine.on_closed(new, world.now))


class RecoveryShell:
    """Performs a recovery's effects in this world."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"recovery {number}"
        self.alive = True
        self.machine = rec.LedgerRecovery(RecoveryConfig(window_entries=4))
        self.payloads: dict[int, int] = {}
        self.version = 0
        self.result: LedgerMetadata | None = None
        self.error: BookKeeperError | None = None
        self.wake_at: float | None = None
        self.frozen: int | None = None

    def life_of(self, bookie: BookieId) -> int:
        return 0

    def tick(self) -> None:
        self.perform(self.machine.on_tick(self.world.now))

    def perform(self, effects: list[rec.Effect]) -> None:
        for effect in effects:
            self.world.note(f"  {self.name}: {effect}")
            match effect:
                case rec.BeginRecovery():
                    self.world.effects.append(StoreEffect(self, self._begin, f"{self.name}: begin"))
                case rec.FenceRead(bookie):
                    self._fence(bookie)
                case rec.RecoveryRead(bookie, entry, fence):
                    self._read(bookie, entry, fence)
                case rec.WriteBack(bookie, entry, lac, length):
                    self._write_back(bookie, Packet(entry, lac, length, self.payloads[entry]))
                case rec.FindStandIns(failed, ensemble):
                    self._find(failed, ensemble)
                case rec.ForgetPayloads(upto):
                    self.payloads = {e: p for e, p in self.payloads.items() if e > upto}
                case rec.CloseRecovered():
                    text = f"{self.name}: {effect}"
                    self.world.effects.append(StoreEffect(self, lambda e=effect: self._close(e), text))  # type: ignore[misc]
                case rec.RecoveryDone(metadata):
                    self.result = metadata
                case rec.RecoveryFailed(error):
                    self.error = error
                case rec.WakeAt(time):
                    self.wake_at = time

    def _ask(
        self, bookie: BookieId, ask: Callable[[Bookie], Callable[[], None]], failed: Callable[[], None], text: str
    ) -> None:
        self.world.send(Message(self, 0, bookie, ask, failed, f"{self.name}: {text} {bookie}"))

    def _begin(self) -> Callable[[], None]:
        world = self.world
        stored = world.stored if world.stored.is_closed else world.write(world.stored.begin_recovery())
        self.version = world.version
        return lambda: self.perform(self.machine.on_begun(stored, world.now))

    def _fence(self, bookie: BookieId) -> None:
        def ask(server: Bookie) -> Callable[[], None]:
            server.fenced = True
            lac = server.lac
            answer = Answer.NEGATIVE if lac is None else Answer.POSITIVE
            heard = None if lac is None else EntryId(lac)
            return lambda: self.perform(self.machine.on_fence_answer(bookie, answer, heard, self.world.now))

        def failed() -> None:
            self.perform(self.machine.on_fence_answer(bookie, Answer.UNKNOWN, None, self.world.now, LOST))

        self._ask(bookie, ask, failed, "fence")

    def _read(self, bookie: BookieId, entry: int, fence: bool) -> None:
        def ask(server: Bookie) -> Callable[[], None]:
            server.fenced |= fence
            packet = server.packets.get(entry)

            def told() -> None:
                if packet is None:
                    self.perform(self.machine.on_read_answer(bookie, entry, Answer.NEGATIVE, self.world.now))
                    return
                self.payloads[entry] = packet.size
                self.perform(self.machine.on_read_answer(bookie, entry, Answer.POSITIVE, self.world.now, packet.length))

            return told

        def failed() -> None:
            self.perform(self.machine.on_read_answer(bookie, entry, Answer.UNKNOWN, self.world.now, error=LOST))

        self._ask(bookie, ask, failed, f"read {entry} from")

    def _write_back(self, bookie: BookieId, packet: Packet) -> None:
        def ask(server: Bookie) -> Callable[[], None]:
            server.packets[packet.entry_id] = packet
            return lambda: self.perform(self.machine.on_written(bookie, packet.entry_id, self.world.now))

        def failed() -> None:
            self.perform(self.machine.on_write_failed(bookie, packet.entry_id, LOST, self.world.now))

        self._ask(bookie, ask, failed, f"write back {packet.entry_id} to")

    def _find(self, failed: tuple[BookieId, ...], ensemble: tuple[BookieId, ...]) -> None:
        world = self.world
        candidates = [name for name, bookie in world.bookies.items() if bookie.up]
        members = RandomChoice().replace(world.spec, ensemble, failed, candidates)

        def perform() -> Callable[[], None]:
            return lambda: self.perform(self.machine.on_stand_ins(members, world.now))

        world.effects.append(StoreEffect(self, perform, f"{self.name}: stand-ins {members}"))

    def _close(self, close: rec.CloseRecovered) -> Callable[[], None]:
        world = self.world
        if self.version != world.version:
            stored = world.stored
            self.version = world.version
            return lambda: self.perform(self.machine.on_close_lost(stored, world.now))
        assert world.stored.state is LedgerState.IN_RECOVERY
        new = world.write(world.stored.close_recovered(close.last_entry, close.length, close.fragments))
        return lambda: self.perform(self.machine.on_closed(new, world.now))
