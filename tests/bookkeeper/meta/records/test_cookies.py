from __future__ import annotations

import pytest

from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.cookies import Cookie, Cookies, decode, encode
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import Version
from tests.bookkeeper.meta.services import REPLY_LOST, Losing, MemoryService, load

FILES = {file["name"]: bytes.fromhex(file["hex"]) for file in load("cookies.json")["files"]}
COOKIE = Cookie(bookie_id=BookieId("a:1"), journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="i")


@pytest.mark.parametrize("name", ["VERSION.default", "VERSION.with-index-dirs"])
def test_a_cookie_of_java_is_read_and_written_as_it_was(name: str) -> None:
    assert encode(decode(FILES[name])) == FILES[name]


def test_what_a_cookie_says() -> None:
    cookie = decode(FILES["VERSION.with-index-dirs"])
    assert cookie.bookie_id == "bookie-with-id.1"
    assert cookie.journal_dirs == ("/data/bk/regB/j1", "/data/bk/regB/j2")
    assert cookie.ledger_dirs == ("/data/bk/regB/l1", "/data/bk/regB/l2")
    assert cookie.index_dirs == ("/data/bk/regB/i1", "/data/bk/regB/i2")
    assert cookie.instance_id == "7e582e10-2801-445e-9e1c-6154aafeb528"


def test_the_plain_lines_of_version_3_are_read() -> None:
    assert decode(b"3\na:1\n/j\n1\t/l\n") == Cookie(
        bookie_id=BookieId("a:1"), journal_dirs=("/j",), ledger_dirs=("/l",), instance_id=None
    )


@pytest.mark.parametrize("data", [b"", b"2\nx", b"5\nbookieHost: 3\n", b"5\n", b'5\nbookieHost: "a"\n', b"3\na\n"])
def test_what_is_no_cookie_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError):
        decode(data)


def test_directories_that_are_counted_wrongly_are_refused() -> None:
    with pytest.raises(MetadataFormatError, match="a cookie says 2 directories, and lists 1"):
        decode(encode(COOKIE).replace(b'"1\\t/l"', b'"2\\t/l"'))


@pytest.mark.rule("M1")
async def test_cookies_change_by_compare_and_set(memory_service: MemoryService) -> None:
    cookies = Cookies(await memory_service.connect(), Paths())
    assert await cookies.known() == []
    assert await cookies.write(COOKIE, None) == 0
    assert (await cookies.read(COOKIE.bookie_id)).value == COOKIE
    wider = Cookie(bookie_id=BookieId("a:1"), journal_dirs=("/j",), ledger_dirs=("/l", "/m"), instance_id="i")
    with pytest.raises(KeyExistsError):
        await cookies.write(wider, None)
    assert await cookies.write(wider, Version(0)) == 1
    with pytest.raises(MetadataConflictError):
        await cookies.delete(COOKIE.bookie_id, Version(0))
    assert await cookies.known() == ["a:1"]
    await cookies.delete(COOKIE.bookie_id, Version(1))
    with pytest.raises(NoSuchKeyError):
        await cookies.read(COOKIE.bookie_id)


@pytest.mark.rule("M8")
async def test_a_cookie_whose_reply_was_lost_is_there_once(memory_service: MemoryService) -> None:
    cookies = Cookies(await memory_service.connect(), Paths())
    memory_service.cluster.interference = Losing(create=[REPLY_LOST], set=[REPLY_LOST], delete=[REPLY_LOST])
    assert await cookies.write(COOKIE, None) == 0
    assert await cookies.write(COOKIE, Version(0)) == 1
    await cookies.delete(COOKIE.bookie_id, Version(1))
    assert await cookies.known() == []
