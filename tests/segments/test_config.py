from __future__ import annotations

import json

import pytest

from segments.config import DEFAULTS, RollPolicy, StreamConfig, StreamRetention, from_stored_table, from_table
from segments.errors import StreamConfigError, StreamCorruptError, UnsupportedStreamFormatError


def test_settings_survive_their_json() -> None:
    config = StreamConfig(
        ensemble=5,
        roll=RollPolicy(max_records=10, max_age_s=1.5),
        retention=StreamRetention(max_age_s=60, consumed=True, cursors="expire"),
        compression="zstd",
        txid="clock",
    )
    assert StreamConfig.decode(config.encode()) == config
    assert StreamConfig.decode(DEFAULTS.encode()) == DEFAULTS


def test_a_setting_that_is_not_there_has_its_default() -> None:
    assert StreamConfig.decode(b'{"format":1,"compression":"lz4"}') == StreamConfig(compression="lz4")


def test_settings_of_a_newer_format_are_refused() -> None:
    newer = json.dumps({**json.loads(DEFAULTS.encode()), "format": 2}).encode()
    with pytest.raises(UnsupportedStreamFormatError, match="format 2"):
        StreamConfig.decode(newer)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'"x"', b'{"format":1,"ensemble":"three"}', b'{"format":1,"x":1}'])
def test_other_bytes_are_no_settings(data: bytes) -> None:
    with pytest.raises(StreamCorruptError):
        StreamConfig.decode(data)


def test_all_values_that_cannot_be_are_named_at_once() -> None:
    with pytest.raises(StreamConfigError) as caught:
        StreamConfig(ensemble=1, write_quorum=2, ack_quorum=1, compression="gzip", roll=RollPolicy(max_bytes=-1))
    for part in ("E >= Qw >= Qa", "compression must be", "roll.max_bytes"):
        assert part in str(caught.value)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["roll.max_age_s", "flush.linger_ms", "retention.max_age_s", "roll.idle_age_s"])
def test_a_number_that_is_none_is_refused(name: str, value: float) -> None:
    with pytest.raises(StreamConfigError, match=f"^{name} must be finite"):
        DEFAULTS.patched({name: value})


def test_settings_are_patched_by_tables_or_dotted_names() -> None:
    """SEG-114 a bad value is refused, and nothing changes"""
    one = DEFAULTS.patched({"roll": {"max_age_s": 60}, "compression": "lz4"})
    assert one == DEFAULTS.patched({"roll.max_age_s": 60.0, "compression": "lz4"})
    assert one.roll.max_age_s == 60 and one.roll.max_bytes == DEFAULTS.roll.max_bytes
    for patch in (
        {"role": 1},
        {"roll.max_agee": 1},
        {"roll": 5},
        {"roll.age_jitter": 2},
        {"roll": 5, "roll.age_jitter": 0},
    ):
        with pytest.raises(StreamConfigError):
            DEFAULTS.patched(patch)


def test_a_setting_of_earlier_versions_that_had_no_effect_is_read_and_not_taken() -> None:
    table = json.loads(DEFAULTS.encode())
    table["producers"]["idle_after_s"] = 21600.0
    assert StreamConfig.decode(json.dumps(table).encode()) == DEFAULTS
    assert from_stored_table({"producers.idle_after_s": 21600.0, "txid": "clock"}).txid == "clock"
    with pytest.raises(StreamConfigError, match=r"no setting producers\.idle_after_s"):
        DEFAULTS.patched({"producers.idle_after_s": 60})


def test_a_table_of_options_is_a_config() -> None:
    """SEG-54 per-stream quorum is used for new segments (the settings have it)"""
    config = from_table({"ensemble": 2, "write_quorum": 2, "ack_quorum": 1, "flush.linger_ms": 5})
    assert str(config.quorum) == "E=2 Qw=2 Qa=1" and config.flush.linger_ms == 5.0
    with pytest.raises(StreamConfigError):
        from_table({"ensemble": 1})


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"unknown": 1}, r"there is no setting unknown; known are ack_quorum, .*flush.max_bytes, .*, write_quorum"),
        ({"un.known": 1}, r"there is no setting un.known; known are ack_quorum, "),
        ({"un": {"known": {"a": 1}}}, r"there is no setting un.known; known are ack_quorum, "),
        ({"roll.max_ages": 1}, r"there is no setting roll.max_ages; known are (roll\.[a-z_]+(, |$)){6}$"),
        ({"retention": {"age": 1}, "flush.x": 2}, r"no setting flush.x and no setting retention.age; known are flush"),
        ({"roll.x": 1, "unknown": 2}, r"no setting roll.x and no setting unknown; known are ack_quorum, "),
        ({"roll": 5}, r"roll must be a table, not 5$"),
        ({"compression": {"x": 1}}, r"compression must be a text, not a table$"),
    ],
)
def test_a_setting_that_does_not_exist_is_named_with_those_that_do(patch: dict[str, object], said: str) -> None:
    with pytest.raises(StreamConfigError, match=said):
        StreamConfig().patched(patch)


@pytest.mark.rule("X19")
def test_a_digest_with_a_key_is_refused_for_new_streams_and_an_old_one_goes_on_without() -> None:
    """Cause: ledgers of streams had no password, so that the key of their digest was known to everybody. They have one
    now, and what travels to Spark's tasks has none."""
    assert StreamConfig(digest="crc32").ledger_digest == "crc32"
    old = StreamConfig.decode(StreamConfig(digest="hmac").encode())
    assert (old.digest, old.ledger_digest) == ("hmac", "crc32c")
    assert old.patched({"txid": "none"}).digest == "hmac"
    for refused in (old.require_digest, lambda: StreamConfig().patched({"digest": "MAC"})):
        with pytest.raises(StreamConfigError, match="digest cannot be hmac"):
            refused()
    unchecked = StreamConfig(digest="dummy")
    assert unchecked.ledger_digest == "crc32c"
    with pytest.raises(StreamConfigError, match="digest cannot be dummy"):
        unchecked.require_digest()


@pytest.mark.rule("X35")
@pytest.mark.parametrize(
    "producers",
    [
        {"max_producers": 1_000_001, "positions_each": 1},
        {"snapshot_every_bytes": 1 << 40},
        {"positions_each": 1 << 40},
        {"max_producers": 1_000_000, "positions_each": 5},
    ],
)
def test_no_new_stream_remembers_producers_without_bound_and_an_old_one_goes_on(producers: dict[str, int]) -> None:
    """Cause: whoever might create a stream could have the gateway that writes it remember as much as he wanted."""
    for patch in ({"producers": producers}, {f"producers.{name}": value for name, value in producers.items()}):
        with pytest.raises(StreamConfigError, match="is more than"):
            StreamConfig().patched(patch)
    old = from_table({"producers": producers})
    assert StreamConfig.decode(old.encode()) == old
    with pytest.raises(StreamConfigError, match="is more than"):
        old.require_bounds()
    assert old.patched({"compression": "lz4"}).producers == old.producers, "what is not touched stays"
    StreamConfig().require_bounds()
