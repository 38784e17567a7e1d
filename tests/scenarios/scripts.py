"""Runs a scenario: commands in, effects out, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig, WriterConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.write import ChangeFailure, LedgerWriter

LOST = BookieUnavailableError("connection lost")
RULE = "----"


def _ids(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first) - int(first) + 1


class Story:
    """One script as it is told."""

    def __init__(self, head: str) -> None:
        kind, *words = head.split()
        values = dict(word.split("=") for word in words)
        spec = QuorumSpec(ensemble_size=int(values["E"]), write_quorum=int(values["Qw"]), ack_quorum=int(values["Qa"]))
        self.metadata = LedgerMetadata.create(spec, [BookieId(b) for b in values["on"].split(",")])
        self.writer = LedgerWriter(self.metadata, WriterConfig(add_timeout_ms=30_000)) if kind == "ledger" else None
        self.recovery = LedgerRecovery(RecoveryConfig(hedge_ms=250))
        self.now = 0.0

    def tell(self, command: str) -> list[str]:
        """What follows from a command."""
        verb, *words = command.split()
        machine = "writer" if self.writer else "recovery"
        act: Callable[[Sequence[str]], Sequence[object]] = getattr(self, f"_{machine}_{verb}")
        return [_line(effect) for effect in act(words)]

    def state(self) -> str:
        return f"   {self.writer or self.recovery!r}"

    # -- the writer

    def _writer_add(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.add([10] * int(words[0]), self.now)[1]

    def _writer_ack(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        told: list[object] = []
        for word in words:
            ids, bookie = word.split(":")
            told += self.writer.on_acks(BookieId(bookie), *_ids(ids), self.now)
        return told

    def _writer_fail(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_bookie_failed(BookieId(words[0]), LOST, self.now)

    def _writer_fenced(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_fenced(self.now)

    def _writer_changed(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        ensemble = [BookieId(b) for b in words[0].split(",")]
        first = self.writer.progress.last_add_confirmed + 1
        return self.writer.on_ensemble_changed(self.writer.metadata.change_ensemble(first, ensemble), self.now)

    def _writer_nospare(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_change_failed(ChangeFailure.NO_SPARE, self.now)

    def _writer_away(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_change_failed(ChangeFailure.STORE_AWAY, self.now)

    def _writer_spare(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_spares_changed(self.now)

    def _writer_back(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.on_bookie_returned(BookieId(words[0]), self.writer.metadata, self.now)

    def _writer_tick(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        self.now += float(words[0])
        return self.writer.on_tick(self.now)

    def _writer_close(self, words: Sequence[str]) -> Sequence[object]:
        assert self.writer
        return self.writer.close(self.now)

    # -- a recovery

    def _recovery_begun(self, words: Sequence[str]) -> Sequence[object]:
        return self.recovery.on_begun(self.metadata.begin_recovery(), self.now)

    def _recovery_fence(self, words: Sequence[str]) -> Sequence[object]:
        told: list[object] = []
        for word in words:
            bookie, equals, lac = word.partition("=")
            if not equals:
                told += self.recovery.on_fence_answer(BookieId(bookie[:-1]), Answer.UNKNOWN, None, self.now, LOST)
            elif lac == "-":
                told += self.recovery.on_fence_answer(BookieId(bookie), Answer.NEGATIVE, None, self.now)
            else:
                told += self.recovery.on_fence_answer(BookieId(bookie), Answer.POSITIVE, EntryId(int(lac)), self.now)
        return told

    def _recovery_read(self, words: Sequence[str]) -> Sequence[object]:
        told: list[object] = []
        for word in words:
            entry, rest = word.split(":")
            bookie, equals, length = rest.partition("=")
            if equals:
                told += self.recovery.on_read_answer(
                    BookieId(bookie), int(entry), Answer.POSITIVE, self.now, int(length)
                )
            else:
                answer = Answer.NEGATIVE if rest.endswith("-") else Answer.UNKNOWN
                told += self.recovery.on_read_answer(BookieId(rest[:-1]), int(entry), answer, self.now)
        return told

    def _recovery_written(self, words: Sequence[str]) -> Sequence[object]:
        told: list[object] = []
        for word in words:
            entry, bookie = word.split(":")
            told += self.recovery.on_written(BookieId(bookie), int(entry), self.now)
        return told

    def _recovery_refused(self, words: Sequence[str]) -> Sequence[object]:
        entry, bookie = words[0].split(":")
        return self.recovery.on_write_failed(BookieId(bookie), int(entry), LOST, self.now)

    def _recovery_standin(self, words: Sequence[str]) -> Sequence[object]:
        pairs = (word.split("=") for word in words)
        return self.recovery.on_stand_ins({BookieId(a): BookieId(b) for a, b in pairs}, self.now)

    def _recovery_tick(self, words: Sequence[str]) -> Sequence[object]:
        self.now += float(words[0])
        return self.recovery.on_tick(self.now)


def _line(effect: object) -> str:
    """An effect in a line: its name, then its fields."""
    values = []
    for name in getattr(effect, "__dataclass_fields__", {}):
        value = getattr(effect, name)
        if name == "fragments":
            value = " ".join(f"{f.first_entry}:{','.join(f.ensemble)}" for f in value)
        elif isinstance(value, tuple):
            value = ",".join(value)
        values.append(f"{name}={value!r}" if isinstance(value, Exception) else f"{name}={value}")
    return f"{type(effect).__name__} {' '.join(values)}".rstrip()


def retell(script: str) -> str:
    """The script with everything that follows, as it follows now."""
    story: Story | None = None
    out: list[str] = []
    for block in script.strip().split("\n\n"):
        lines = block.splitlines()
        asked = lines[: lines.index(RULE)] if RULE in lines else lines
        told: list[str] = []
        for line in (text for text in asked if not text.startswith("#")):
            if line.startswith(("ledger ", "recover ")):
                story = Story(line)
            else:
                assert story is not None, "a script begins with its ledger"
                told += story.tell(line)
        assert story is not None
        out.append("\n".join([*asked, RULE, *told, story.state()]))
    return "\n\n".join(out) + "\n"


def scripts() -> list[Path]:
    """All of them."""
    return sorted(Path(__file__).parent.glob("*.txt"))
