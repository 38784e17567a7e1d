"""One owner at a time: rising epochs, one change per step, and no step after another claim."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from bookkeeper.chains.owned_node import ClaimLostError, OwnedNode
from bookkeeper.errors import MetadataConflictError, MetadataUnavailableError
from bookkeeper.meta.store import Version
from tests.bookkeeper.chains.pages import LostWrite, Page, Shelf

_nonces = count(1)


async def claim(shelf: Shelf, owner: str = "me") -> OwnedNode[Page]:
    record = shelf.record()
    await record.create_if_absent(Page())
    return await OwnedNode.claim(record, owner, f"n{next(_nonces)}")


async def text(shelf: Shelf) -> str:
    return (await shelf.record().read())[0].text


@pytest.mark.rule("C5")
async def test_a_step_of_a_former_owner_is_refused_and_changes_nothing() -> None:
    shelf = Shelf()
    old = await claim(shelf, "old")
    await old.step(lambda page: page.writing("by old"))
    new = await claim(shelf, "new")
    assert (new.value.epoch, new.value.owner, new.value.text) == (2, "new", "by old")
    for attempt in (old.step(lambda page: page.writing("again")), old.ensure_current(), old.condition()):
        with pytest.raises(ClaimLostError) as caught:
            await attempt
        assert caught.value.found.owner == "new"
    await new.step(lambda page: page.writing("by new"))
    assert await text(shelf) == "by new"


@pytest.mark.rule("C5")
async def test_claims_that_race_get_distinct_epochs_and_one_owner_is_left() -> None:
    shelf = Shelf()
    owners = await asyncio.gather(*(claim(shelf, "same name") for _ in range(8)))
    assert sorted(owner.value.epoch for owner in owners) == list(range(1, 9))
    current = 0
    for owner in owners:
        try:
            await owner.ensure_current()
            current += 1
        except ClaimLostError:
            pass
    assert current == 1


@pytest.mark.rule("M8")
async def test_a_lost_reply_is_settled_for_claims_and_steps() -> None:
    for lost in range(4):
        shelf = Shelf()
        shelf.metadata.interference = LostWrite(lost)
        owner = await claim(shelf)
        await owner.step(lambda page: page.writing("one"))
        await owner.step(lambda page: page.writing(page.text + " two"))
        assert await text(shelf) == "one two" and owner.value.epoch == 1


async def test_after_a_step_of_unknown_outcome_the_next_one_reads_again() -> None:
    shelf = Shelf()
    owner = await claim(shelf)
    write = owner.node.write

    async def done_and_not_known(value: Page, expected: Version, *, created_txn: int = 0) -> Version:
        await write(value, expected)
        raise MetadataUnavailableError("the store went away")

    owner.node.write = done_and_not_known  # type: ignore[method-assign]
    with pytest.raises(MetadataUnavailableError):
        await owner.step(lambda page: page.writing("one"))
    assert owner.value.text == "", "it does not know yet"
    owner.node.write = write  # type: ignore[method-assign]
    await owner.step(lambda page: page.writing(page.text + " two"))
    assert await text(shelf) == "one two"


async def test_a_record_may_be_refused_before_it_is_claimed() -> None:
    def refuse(page: Page) -> None:
        raise ValueError("not this one")

    shelf = Shelf()
    record = shelf.record()
    await record.create_if_absent(Page())
    with pytest.raises(ValueError, match="not this one"):
        await OwnedNode.claim(record, "me", "n", refuse)
    assert (await record.read())[0].epoch == 0


async def test_a_change_behind_the_owners_back_is_no_change_of_owner() -> None:
    shelf = Shelf()
    owner = await claim(shelf)
    value, version = await owner.node.read()
    await shelf.record().write(value.writing("by hand"), version)
    with pytest.raises(MetadataConflictError) as caught:
        await owner.step(lambda page: page.writing("mine"))
    assert not isinstance(caught.value, ClaimLostError)
    await owner.step(lambda page: page.writing(page.text + ", and mine"))
    assert await text(shelf) == "by hand, and mine"


async def test_the_condition_is_the_version_of_now() -> None:
    shelf = Shelf()
    owner = await claim(shelf)
    condition = await owner.condition()
    assert (condition.path, condition.expected) == (owner.node.path, (await owner.node.read())[1])
    await owner.step(lambda page: page.writing("more"))
    assert (await owner.condition()).expected == condition.expected + 1  # type: ignore[operator]


@pytest.mark.rule("C5")
async def test_two_claims_of_one_epoch_are_two_owners() -> None:
    """As after the store was put back to an older state, or a record was made anew: epoch and name are the same, and
    only the claims' nonces differ."""
    shelf = Shelf()
    before = await shelf_with_a_page(shelf)
    old = await OwnedNode.claim(shelf.record(), "me", "n-old")
    _, version = await old.node.read()
    await shelf.record().write(before, version)
    new = await OwnedNode.claim(shelf.record(), "me", "n-new")
    assert (new.value.epoch, new.value.owner) == (old.value.epoch, old.value.owner)
    for attempt in (old.step(lambda page: page.writing("by old")), old.ensure_current(), old.condition()):
        with pytest.raises(ClaimLostError) as caught:
            await attempt
        assert caught.value.found.nonce == "n-new"
    await new.step(lambda page: page.writing("by new"))
    assert await text(shelf) == "by new"


async def shelf_with_a_page(shelf: Shelf) -> Page:
    record = shelf.record()
    await record.create_if_absent(Page())
    return (await record.read())[0]


@pytest.mark.rule("C5")
async def test_an_owner_of_the_same_epoch_but_another_claim_does_not_go_on_after_an_unknown_outcome() -> None:
    """The next step reads the record again, and takes what it finds for its own by epoch and nonce."""
    shelf = Shelf()
    before = await shelf_with_a_page(shelf)
    old = await OwnedNode.claim(shelf.record(), "me", "n-old")

    async def lost(value: Page, expected: Version, *, created_txn: int = 0) -> Version:
        raise MetadataUnavailableError("the store went away")

    write, old.node.write = old.node.write, lost  # type: ignore[method-assign]
    with pytest.raises(MetadataUnavailableError):
        await old.step(lambda page: page.writing("by old"))
    old.node.write = write  # type: ignore[method-assign]
    _, version = await old.node.read()
    await shelf.record().write(before, version)
    await OwnedNode.claim(shelf.record(), "me", "n-new")
    with pytest.raises(ClaimLostError):
        await old.step(lambda page: page.writing("by old"))
    assert await text(shelf) == ""


@pytest.mark.rule("C5")
async def test_a_former_owner_of_a_write_with_others_is_told_who_has_taken_over() -> None:
    shelf = Shelf()
    old = await claim(shelf, "old")
    await claim(shelf, "new")
    with pytest.raises(ClaimLostError) as caught:
        await old.step_with(lambda page: page.writing("by old"), [])
    assert caught.value.found.owner == "new"
