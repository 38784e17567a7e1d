"""``bk ledger recover --accept-loss``."""

from __future__ import annotations

import json
from pathlib import Path

from bookkeeper import BookKeeper
from bookkeeper.admin.ledger.accept_loss import lines
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.real import run
from bookkeeper.replication.losses.closing_loss import ClosingLoss
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import bookies, until


def test_what_is_given_up_is_told_in_plain_words() -> None:
    given = ClosingLoss(
        EntryId(9), 2048, (range(2, 5), range(7, 8)), 512, "too few answer", {BookieId("b2"): "it is gone"}
    )
    assert lines(7, given) == [
        "ledger 7 cannot be recovered without a loss: too few answer",
        "  b2 does not answer: it is gone",
        "it would be closed at entry 9, 2.0 KiB",
        "given up would be:",
        "  4 entries: 2..4, 7..7, 512 B in gaps",
        "  whatever else was acknowledged after entry 9: nobody who answers knows of it",
    ]
    empty = lines(7, ClosingLoss(EntryId(-1), 0, (), 0, "why"))
    assert empty[1:] == [
        "nothing of it can be read: it would be closed empty",
        "given up would be:",
        "  whatever else was acknowledged: nobody who answers knows of it",
    ]


def test_a_loss_is_accepted_only_with_the_flag_and_a_yes(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3")) as three:

        async def left_open() -> tuple[int, list[str]]:
            async with BookKeeper.connect(three.uri) as client:
                ledger = await client.create_ledger(password=b"secret", ensemble=3, write_quorum=2, ack_quorum=2)
                await ledger.append_many([b"12345"] * 12)
                names = [str(bookie) for bookie in ledger.metadata.last_fragment.ensemble]
                await ledger.abandon()
                return int(ledger.id), names

        ledger, names = run(left_open())
        whole, _ = run(left_open())
        said = bk("ledger", "recover", whole, "--accept-loss", "-m", three.uri)
        assert (said.status, said.out) == (0, f"ledger {whole} is closed; its last entry is 11\nnothing was given up\n")
        bk("ledger", "recover", whole, "--accept-loss", "-m", three.uri).refused("is closed at entry 11", "is final")
        for name in names[:2]:
            three[name].kill()
        until(lambda: [three.states()[name] for name in names[:2]] == ["absent", "absent"], 60, three.states)
        no = bk("ledger", "recover", ledger, "--accept-loss", "-m", three.uri, stdin=b"n\n")
        assert no.status == 130 and "4 entries: 0..0, 3..3, 6..6, 9..9, 20 B in gaps" in no.err
        assert bk("ledger", "show", ledger, "-m", three.uri, "--json").document["state"] == "IN_RECOVERY"
        yes = bk("ledger", "recover", ledger, "--accept-loss", "--yes", "--json", "-m", three.uri)
        document = json.loads(yes.out)
        assert yes.status == 0 and document["last_entry"] == 11 and document["given_up"]["entries_count"] == 4
        shown = bk("ledger", "show", ledger, "-m", three.uri, "--json").document
        assert shown["state"] == "CLOSED" and '"entries_count": 4' in shown["custom"]["bookkeeper-py.given-up"]
