"""Encrypted ledgers: what bookies see, who can read them, and that no id is ever sealed with other bytes (X24)."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.operators import Operator
from bookkeeper.encryption import EncryptionConfig
from bookkeeper.encryption.ciphers import TAG_BYTES
from bookkeeper.encryption.key_record import RECORD_NAME
from bookkeeper.errors import (
    AddTimeoutError,
    BookKeeperError,
    ClientClosedError,
    ConfigError,
    DecryptionError,
    DuplicateEntryError,
    LedgerFencedError,
    MetadataFormatError,
    NoLedgerKeyError,
)
from bookkeeper.ledger import HEADER_SIZE, DigestScheme, DigestType
from bookkeeper.replication.copying.replace import replicate_fragment
from bookkeeper.testing.cluster import CLIENT, SimCluster
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster
from tests.bookkeeper.encryption.keys import NEW, OLD, encrypted, ring

SECRET = b"a secret that no bookie sees"
PAYLOADS = [SECRET + b"%d" % number for number in range(40)]
SEALED = replace(CONFIG, encryption=encrypted())


def stored(cluster: ScriptedCluster, ledger_id: int) -> dict[int, bytes]:
    """The payloads of a ledger as the bookies have them."""
    overhead = HEADER_SIZE + 4
    names = ("b1", "b2", "b3")
    return {entry: packet[overhead:] for name in names for entry, packet in cluster[name].entries[ledger_id].items()}


@pytest.mark.rule("X24")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize("changes", [{}, {"compression": "zstd"}, {"cipher": "chacha20-poly1305"}], ids=str)
def test_what_was_appended_is_read_and_bookies_see_none_of_it(protocol: str, changes: dict[str, Any]) -> None:
    config = replace(SEALED, protocol=protocol, encryption=encrypted(**changes))

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, cluster.connect(config) as other:
            async with await bk.create_ledger() as ledger:
                mine = await bk.open_ledger(ledger.id, recovery=False)
                tail = mine.tail()
                assert await ledger.append(PAYLOADS[0]) == 0
                await ledger.append_many(PAYLOADS[1:30])
                await asyncio.gather(*(ledger.append_nowait(payload) for payload in PAYLOADS[30:]))
                assert [(await anext(tail)).payload for _ in range(40)] == PAYLOADS  # by the writer's own word
                await mine.close()
                length = ledger.length
            seen = stored(cluster, ledger.id)
            assert not any(b"secret" in packet for packet in seen.values())
            assert length == sum(map(len, seen.values())) == (await bk.metadata(ledger.id)).length
            if not changes:
                assert length == sum(map(len, PAYLOADS)) + 40 * TAG_BYTES
            async with await other.open_ledger(ledger.id) as reader:
                assert [entry.payload async for entry in reader.read(0, 39)] == PAYLOADS
                assert await reader.read_entry(7) == PAYLOADS[7] == await reader.read_unconfirmed(7)
                assert [entry.payload for entry in await reader.read_batch(3, count_max=2)] == PAYLOADS[3:5]
                assert [entry.payload async for entry in reader.tail(38)] == PAYLOADS[38:]
                found = await reader.read_last_add_confirmed_and_entry(5, timeout_ms=1)
                assert found[1] is not None and found[1].payload == PAYLOADS[5]

    ScriptedCluster().run(story)


@pytest.mark.rule("X24")
def test_a_reader_that_waits_elsewhere_gets_what_comes_with_the_news() -> None:
    async def story(cluster: SimCluster) -> None:
        config = replace(CLIENT, encryption=encrypted())
        async with cluster.connect(config) as bk, cluster.connect(config) as other:
            ledger = await bk.create_ledger()
            await ledger.append(PAYLOADS[0])
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                tail = reader.tail_batches()
                got: list[bytes] = []
                while len(got) < 10:
                    waiting = asyncio.ensure_future(anext(tail))
                    await asyncio.sleep(0.05)
                    if len(got) < 9:
                        await ledger.append(PAYLOADS[len(got) + 1])
                    got += (await waiting)[1]
                assert got == PAYLOADS[: len(got)]
                await ledger.append_many(PAYLOADS[len(got) : 11])
                await reader.read_last_add_confirmed()
                poll = asyncio.ensure_future(reader.read_last_add_confirmed_and_entry(11, timeout_ms=2000))
                await asyncio.sleep(0.05)
                await ledger.append(PAYLOADS[11])
                found = (await poll)[1]
                assert found is not None and found.payload == PAYLOADS[11]
            await ledger.close()

    SimCluster(seed=5).run(story)


@pytest.mark.rule("X24")
def test_it_is_off_by_default_and_chosen_for_each_ledger() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as plain:
                await plain.append(SECRET)
            assert stored(cluster, plain.id)[0] == SECRET
            with pytest.raises(ConfigError, match="encrypted=True needs a key"):
                await bk.create_ledger(encrypted=True)
            with pytest.raises(ConfigError, match="encrypted must be True or False"):
                await bk.create_ledger(encrypted=1)  # type: ignore[call-overload]
            with pytest.raises(ConfigError, match="custom_metadata cannot have"):
                await bk.create_ledger(custom_metadata={RECORD_NAME: b"{}"})
        only_reads = replace(CONFIG, encryption=encrypted(new_ledgers=False))
        cases: list[tuple[ClientConfig, dict[str, Any], bool]] = [
            (SEALED, {"encrypted": False}, False),
            (only_reads, {}, False),
            (only_reads, {"encrypted": True}, True),
            (SEALED, {}, True),
        ]
        for config, options, sealed in cases:
            async with cluster.connect(config) as bk, await bk.create_ledger(**options) as ledger:
                await ledger.append(SECRET)
                assert (stored(cluster, ledger.id)[0] != SECRET) is sealed
                assert (RECORD_NAME in (await bk.metadata(ledger.id)).custom) is sealed

    ScriptedCluster().run(story)


@pytest.mark.rule("X24")
def test_without_the_key_nothing_is_read_and_nobody_is_fenced() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        wrong = replace(CONFIG, encryption=EncryptionConfig(provider=ring(old=OLD)))
        async with cluster.connect(SEALED) as bk, cluster.connect(wrong) as has_another, cluster.connect() as none:
            ledger = await bk.create_ledger()
            await ledger.append(SECRET)
            for client, said in ((none, "this client has no keys"), (has_another, "key new is needed")):
                for recovery in (True, False):
                    with pytest.raises(NoLedgerKeyError, match=said):
                        await client.open_ledger(ledger.id, recovery=recovery)
            assert await ledger.append(b"goes on") == 1
            found = await bk.metadata_store.ledgers.read(ledger.id)
            odd = {**found.value.custom, RECORD_NAME: b"something"}
            await bk.metadata_store.ledgers.write(ledger.id, replace(found.value, custom=odd), found.version)
            with pytest.raises(MetadataFormatError, match="in a way that this program does not understand"):
                await bk.open_ledger(ledger.id, recovery=False)
            await ledger.abandon()

    ScriptedCluster().run(story)


@pytest.mark.rule("X24")
def test_a_ledger_is_recovered_repaired_and_deleted_without_the_key_and_its_bytes_stay() -> None:
    """A recovery writes back what it reads, sealed as it is; so does a copy to another bookie."""

    async def story(cluster: SimCluster) -> None:
        config = replace(CLIENT, encryption=encrypted())
        async with cluster.connect() as bk, cluster.connect(config) as keeper:
            ledger = await keeper.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2)
            await ledger.append_many(PAYLOADS)
            await asyncio.sleep(1)
            operator = Operator(bk)
            before = [(await operator.copy_on(name, ledger.id, 7)).payload for name in ledger.metadata.bookies]
            assert len(set(before)) == 1 and SECRET not in before[0]
            closed = await operator.recover_ledger(ledger.id)
            assert closed.is_closed and closed.last_entry == 39
            with pytest.raises(BookKeeperError):
                await ledger.append(b"late")
            old = closed.last_fragment.ensemble[0]
            done = await replicate_fragment(bk, ledger.id, 0, old)
            assert done.target is not None
            assert (await operator.copy_on(done.target, ledger.id, 7)).payload == before[0]
            async with await keeper.open_ledger(ledger.id) as reader:
                assert [entry.payload async for entry in reader.read(0, 39)] == PAYLOADS
                known = pickle.loads(pickle.dumps(reader.known))
            async with await keeper.open_known(known) as elsewhere:
                assert await elsewhere.read_entry(7) == PAYLOADS[7]
            with pytest.raises(NoLedgerKeyError):
                await bk.open_known(known)
            await bk.delete_ledger(ledger.id)

    SimCluster(seed=6, bookies=4).run(story)


@pytest.mark.rule("X24")
def test_an_entry_that_somebody_without_the_key_has_made_is_read_from_another_bookie_or_not_at_all() -> None:
    """Its digest is right, as a bookie can make one: readers took it, or ended there with two good copies left."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(SEALED) as bk:
            async with await bk.create_ledger() as ledger:
                await ledger.append_many(PAYLOADS[:3])
            forged = DigestScheme(DigestType.CRC32C, b"").seal(ledger.id, 1, 0, 99, b"forged, with a good checksum")
            for number, name in enumerate(("b1", "b2", "b3"), 1):
                cluster[name].entries[ledger.id][1] = forged
                async with await bk.open_ledger(ledger.id) as reader:
                    if number < 3:
                        for _ in range(3):  # bookies take turns
                            assert await reader.read_entry(1) == await reader.read_unconfirmed(1) == PAYLOADS[1]
                            assert [each.payload async for each in reader.read(0, 2)] == PAYLOADS[:3]
                        continue
                    for read in (reader.read_entry(1), reader.read_unconfirmed(1), anext(reader.read(0, 2))):
                        with pytest.raises(DecryptionError, match=f"entry 1 of ledger {ledger.id} does not open"):
                            await read
                    assert await reader.read_entry(2) == PAYLOADS[2]
            assert bk.services.metrics.counter("corrupt_copies", "").value > 3

    ScriptedCluster().run(story)


@pytest.mark.rule("X24", "W7", "W8")
def test_other_bytes_under_an_id_whose_outcome_is_unknown_are_refused_before_they_are_sealed() -> None:
    """Cause elsewhere: an append that timed out was repeated with other bytes under the same position and key."""

    async def story(cluster: ScriptedCluster) -> None:
        config = replace(SEALED, encryption=encrypted(compression="zstd"))
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger(advanced=True)
            for entry_id in (2, 0, 1):
                ledger.append_at_nowait(entry_id, b"%d" % entry_id)
            await ledger.flush()
            for name in ("b1", "b2", "b3"):
                cluster[name].silent = True
            first = asyncio.ensure_future(ledger.append_at(3, b"a" * 100))
            await asyncio.sleep(0.1)
            for again in (b"b" * 100, b"a" * 100):
                with pytest.raises(DuplicateEntryError):
                    await ledger.append_at(3, again)
            with pytest.raises(AddTimeoutError):
                await first
            with pytest.raises(AddTimeoutError):
                await ledger.append_at(3, b"b" * 100)
            sent = {
                bytes(packet[HEADER_SIZE + 4 :])
                for name in ("b1", "b2", "b3")
                for packet in [cluster[name].entries[ledger.id].get(3)]
                if packet is not None
            }
            assert len(sent) <= 1

    ScriptedCluster().run(story)


@pytest.mark.rule("X24", "M6")
def test_a_ledger_under_an_id_that_was_used_before_has_another_key() -> None:
    """After the metadata were put back to an older state the id may come again; the key does not."""

    async def story(cluster: SimCluster) -> None:
        config = replace(CLIENT, encryption=encrypted())
        async with cluster.connect(config) as bk:
            backup = cluster.store.snapshot()
            lives = await bk.create_ledger(ledger_id=7)
            first = (await bk.metadata(7)).custom[RECORD_NAME]
            await lives.append(b"a")
        cluster.store.restore(backup)
        async with cluster.connect(config) as bk:
            again = await bk.create_ledger(ledger_id=7)
            assert (await bk.metadata(7)).custom[RECORD_NAME] != first
            await again.abandon()

    SimCluster(seed=8).run(story)


@pytest.mark.rule("X24")
def test_a_rotated_key_reads_on_and_a_fenced_writer_seals_no_more() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        before = replace(CONFIG, encryption=EncryptionConfig(provider=ring(old=OLD)))
        after = replace(CONFIG, encryption=EncryptionConfig(provider=ring(new=NEW, old=OLD)))
        async with cluster.connect(before) as bk, cluster.connect(after) as rotated:
            ledger = await bk.create_ledger()
            await ledger.append(SECRET)
            async with await rotated.open_ledger(ledger.id) as reader:
                assert await reader.read_entry(0) == SECRET
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"late")
            async with await rotated.create_ledger() as newer:
                await newer.append(SECRET)
            with pytest.raises(NoLedgerKeyError, match="key new is needed, and the test has old"):
                await bk.open_ledger(newer.id)

    ScriptedCluster().run(story)


def test_the_environment_gives_keys_to_a_client_that_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from bookkeeper.client.openers import with_surroundings

    assert with_surroundings(ClientConfig()).encryption is None
    monkeypatch.setenv("BK_ENCRYPTION_KEY_FILE", "/run/keys")
    assert with_surroundings(ClientConfig()).encryption == EncryptionConfig(key_file="/run/keys")
    own = ClientConfig(encryption=encrypted())
    assert with_surroundings(own).encryption is own.encryption


@pytest.mark.rule("X24", "W6")
def test_a_writer_that_cannot_seal_ends_and_leaves_nobody_waiting() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(SEALED) as bk:
            for way in ("single", "run"):
                ledger = await bk.create_ledger()
                await ledger.append(SECRET)
                sealer = ledger._shell._sealer
                assert sealer is not None
                sealer.seal(1, [b"somebody has sealed entry 1 already"])
                with pytest.raises(ClientClosedError, match="InvariantError: rule X24"):
                    await (ledger.append(b"other") if way == "single" else ledger.append_many([b"other", b"bytes"]))
                with pytest.raises(ClientClosedError):
                    await ledger.append(b"late")
                assert ledger.closed and list(stored(cluster, ledger.id)) == [0]

    ScriptedCluster().run(story)


@pytest.mark.rule("X24")
def test_a_reader_that_insists_takes_no_entry_of_a_ledger_whose_key_was_taken_away() -> None:
    """Attacker W: who writes the metadata makes an encrypted ledger plain, and his entries pass for the writer's."""

    async def story(cluster: ScriptedCluster) -> None:
        insists = replace(CONFIG, encryption=encrypted(required=True))
        async with cluster.connect(insists) as bk:
            with pytest.raises(ConfigError, match="encrypted=False is not for a client that insists"):
                await bk.create_ledger(encrypted=False)
            async with await bk.create_ledger() as ledger:
                await ledger.append(SECRET)
            async with await bk.open_ledger(ledger.id) as reader:
                assert await reader.read_entry(0) == SECRET
            found = await bk.metadata_store.ledgers.read(ledger.id)
            plain = {name: value for name, value in found.value.custom.items() if name != RECORD_NAME}
            await bk.metadata_store.ledgers.write(ledger.id, replace(found.value, custom=plain), found.version)
            for recovery in (True, False):
                with pytest.raises(NoLedgerKeyError, match="this client reads encrypted ledgers only"):
                    await bk.open_ledger(ledger.id, recovery=recovery)

    ScriptedCluster().run(story)
