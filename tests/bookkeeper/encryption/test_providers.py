"""Wrapping keys: the first one wraps, every one unwraps, and what cannot be used is said without showing a key."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from bookkeeper.encryption import EnvironmentKeys, FileKeys, KeyProvider, KeyRing
from bookkeeper.errors import ConfigError, NoLedgerKeyError
from tests.bookkeeper.encryption.keys import NEW, OLD, line, ring

DATA = bytes(range(100, 132))


@pytest.mark.rule("X24")
async def test_after_a_rotation_the_new_key_wraps_and_the_old_one_still_unwraps(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(line("old", OLD))
    path.chmod(0o600)
    keys = FileKeys(str(path))
    before = await keys.wrap(DATA)
    path.write_text("# the newest first\n" + line("new", NEW) + line("old", OLD))
    after = await keys.wrap(DATA)
    assert (before.key_id, after.key_id) == ("old", "new")
    assert [await keys.unwrap(before), await keys.unwrap(after)] == [DATA, DATA]
    path.write_text(line("new", NEW))
    with pytest.raises(NoLedgerKeyError, match=f"key old is needed, and {path} has new"):
        await keys.unwrap(before)
    path.write_text(line("new", OLD))
    with pytest.raises(NoLedgerKeyError, match=r"not the one under which .* although it has its id"):
        await keys.unwrap(after)


async def test_keys_come_from_the_environment_or_a_function() -> None:
    environment = {"KEYS": line("new", NEW).strip() + "," + line("old", OLD)}
    for keys in (EnvironmentKeys("KEYS", environment), ring(new=NEW, old=OLD)):
        assert isinstance(keys, KeyProvider)
        wrapped = await keys.wrap(DATA)
        assert wrapped.key_id == "new" and await keys.unwrap(wrapped) == DATA
    with pytest.raises(ConfigError, match="NONE in the environment cannot be used: there is no key"):
        await EnvironmentKeys("NONE", environment).wrap(DATA)


@pytest.mark.rule("X43", "X58")
async def test_a_file_that_others_may_read_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(ConfigError, match="the file of keys cannot be read"):
        await FileKeys(str(path)).wrap(DATA)
    path.write_text(line("new", NEW))
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        await FileKeys(str(path)).wrap(DATA)


@pytest.mark.rule("X59")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no key"),
        ("# nothing\n\n", "there is no key"),
        (b64encode(NEW).decode(), "key 1 is not ID:BASE64"),
        (line("a", NEW) + "b:" + b64encode(NEW[:16]).decode(), "key 2 is not ID:BASE64 with 32 bytes"),
        ("a:planted-and-no-base64", "key 1 is not"),
        (line("a", NEW) + line("a", OLD), "two keys a"),
        (line("a b", NEW), "letters, digits"),
        (line("x" * 65, NEW), "letters, digits"),
    ],
)
def test_what_is_no_list_of_keys_is_refused_and_not_shown(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        KeyRing.parse(text)
    shown = str(refused.value) + repr(KeyRing({"a": NEW}))
    assert "planted" not in shown and b64encode(NEW).decode() not in shown and repr(NEW) not in shown


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33, "x" * 32])
def test_a_ring_refuses_a_key_of_another_length(key: bytes) -> None:
    with pytest.raises(ConfigError, match="key k1 must have 32 bytes"):
        KeyRing({"k1": key})
