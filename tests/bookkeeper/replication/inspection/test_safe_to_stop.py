"""May these bookies be stopped?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, explain_range
from bookkeeper.replication.inspection.safe_to_stop import metadata_obstacles, safe_to_stop, unseen_obstacles
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, written


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


def names(*numbers: int) -> list[BookieId]:
    return [BookieId(f"b{number}") for number in numbers]


def metadata(ensemble: Sequence[BookieId], write: int, ack: int) -> LedgerMetadata:
    spec = QuorumSpec(ensemble_size=len(ensemble), write_quorum=write, ack_quorum=ack)
    return LedgerMetadata.create(spec, ensemble)


def test_metadata_alone_say_no_where_no_other_bookie_has_a_copy_or_a_writer_could_not_go_on() -> None:
    up = set(names(1, 2, 3, 4))
    striped = metadata(names(1, 2, 3), write=2, ack=2)
    assert metadata_obstacles(striped, {BookieId("b4")}, up) == [], "a bookie that it does not name"
    (why,) = metadata_obstacles(striped, {BookieId("b1")}, up)
    assert why == (
        "it is open, and some entries would not find 2 bookies to store them: of b1, b2, b3 only these would be up: "
        "b2, b3"
    )
    assert metadata_obstacles(metadata(names(1, 2, 3), write=3, ack=2), {BookieId("b1")}, up) == []
    assert metadata_obstacles(metadata(names(1, 2, 3), write=3, ack=2), {BookieId("b1")}, up - {BookieId("b2")})
    closed = striped.close(9, 100)
    assert metadata_obstacles(closed, {BookieId("b1")}, up) == []
    (why,) = metadata_obstacles(closed, set(names(1, 2)), up)
    assert why == "entries 0..9: no other bookie that is up has copies of all of them"
    assert metadata_obstacles(striped.close(-1, 0), set(names(1, 2, 3)), up) == [], "it is empty"
    one = striped.close(0, 10)
    assert metadata_obstacles(one, set(names(1, 3)), up) == [], "the only entry is on b1 and b2"


def test_answers_say_no_where_the_other_copies_were_not_seen() -> None:
    spec = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=1)
    a, b = names(1, 2)
    gone = ExplainedCopy(a, CopyState.GONE, reason="it was not asked")

    def why(other: ExplainedCopy, end: int | None = 9) -> list[str]:
        last = EntryId(end) if end is not None else None
        return unseen_obstacles([explain_range(spec, EntryId(0), last, True, [gone, other])], {a})

    assert why(ExplainedCopy(b, CopyState.SEEN)) == []
    assert why(ExplainedCopy(b, CopyState.LACKING, 2, (range(3, 5),))) == [
        "entries 0..9: no other copy of 2 of them was seen (b2 lacks 2)"
    ]
    assert why(ExplainedCopy(b, CopyState.BELIEVED, reason="it sleeps")) == [
        "entries 0..9: no other copy of 10 of them was seen (b2 is believed: it sleeps)"
    ]
    assert why(ExplainedCopy(b, CopyState.BELIEVED, reason="it sleeps"), None) == [
        "entries 0..?: the last add confirmed is not known (it sleeps)"
    ]
    assert unseen_obstacles([explain_range(spec, EntryId(0), EntryId(9), True, [gone, gone])], {b}) == []


def test_one_of_three_may_go_and_two_may_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 10, ensemble=2, write_quorum=2, ack_quorum=2) for _ in range(6)]
            told: list[int] = []
            one = await safe_to_stop(bk, ["b1"], told.append)
            naming = [ledger for ledger in ledgers if "b1" in (await bk.metadata(ledger)).bookies]
            assert one.is_safe and one.ledgers == 6 and told[-1] == 6
            assert one.asked == len(naming) < 6, "only ledgers that name it are asked about"
            all_of_them = await safe_to_stop(bk, ["b1", "b2", "b3", "b4"])
            assert [each.ledger_id for each in all_of_them.obstacles] == ledgers and all_of_them.asked == 0
            with pytest.raises(IllegalOperationError, match="there is no bookie b9; known are b1"):
                await safe_to_stop(bk, ["b9"])
            with pytest.raises(IllegalOperationError, match="no bookie was named"):
                await safe_to_stop(bk, [])

    run(story)


@pytest.mark.rule("A4")
def test_a_bookie_that_does_not_answer_is_no_other_copy() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10, ensemble=2, write_quorum=2, ack_quorum=2)
            one, other = sorted((await bk.metadata(ledger)).bookies)
            cluster.world.network.cut("client", other)
            no = await safe_to_stop(bk, [one])
            (why,) = no.obstacles
            assert why.ledger_id == ledger and f"{other} is believed" in why.reason and no.asked == 1
            assert not (await safe_to_stop(bk, [other])).obstacles, "the one that answers has everything"
            cluster.node(other).crash()
            await asyncio.sleep(5)
            assert not (await safe_to_stop(bk, [one])).is_safe
            assert (await safe_to_stop(bk, [other])).is_safe, "it is away already"

    run(story)


def test_an_open_ledger_needs_its_ack_quorum_and_its_confirmed_entries() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", ensemble=3, write_quorum=3, ack_quorum=2)
            await append(cluster, ledger, 10)
            first, second, third = ledger.metadata.last_fragment.ensemble
            assert (await safe_to_stop(bk, [first])).is_safe
            no = await safe_to_stop(bk, [first, second])
            assert no.obstacles[0].reason.endswith(f"only these would be up: {third}")
            await ledger.close()
            assert (await safe_to_stop(bk, [first, second])).is_safe, "one copy is left"

    run(story)


def test_a_ledger_whose_metadata_cannot_be_read_says_no() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 3)
            store = bk.metadata_store
            await store.store.set(store.ledgers.path(ledger), b"nonsense", None)
            (why,) = (await safe_to_stop(bk, ["b1"])).obstacles
            assert "its metadata cannot be read" in why.reason

    run(story)
