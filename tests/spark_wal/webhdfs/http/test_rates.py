"""Changes and uploads at their caller's rates, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bookkeeper.access import Mode, Policy, Principal, PrincipalQuota, Quota, QuotaBook, QuotaRefusal, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from spark_wal.webhdfs.http.operations import perform
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.rates import WAIT_S
from spark_wal.webhdfs.http.request import Reply, Request
from spark_wal.webhdfs.ownership.gateway import Gateway
from tests.spark_wal.webhdfs.ownership.test_gateway import Hall
from tests.spark_wal.webhdfs.virtual import Switch, in_virtual_time

ETL = Caller("etl")
STEP_TWO = "&namenoderpcaddress=x"


class Rates:
    """The rates of one policy, at one gateway."""

    def __init__(self, quota: Quota) -> None:
        policy = Policy(Mode.ENFORCE, quotas=(PrincipalQuota(Subject.parse("etl"), quota),))
        self.book = QuotaBook(policy)
        self.permissions = CallerRights(take=self._take)

    def _take(self, who: Principal, entries: int, size: int) -> QuotaRefusal | None:
        return self.book.charge(who, None, entries, size, asyncio.get_running_loop().time())


async def pieces(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield bytes(size)


async def ask(
    gateway: Gateway, rates: Rates, method: str, path: str, query: str, *sizes: int, caller: Caller | None = ETL
) -> tuple[Reply, float]:
    """The answer, and how many seconds it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    request = Request(
        method, path, Query(query), "h:1", pieces(*sizes), principal=caller, permissions=rates.permissions
    )
    return await perform(gateway, request), loop.time() - began


@pytest.mark.rule("X32")
@in_virtual_time
async def test_what_comes_too_fast_waits_and_reading_does_not() -> None:
    """Cause: the rates of the policy held at the gateway of streams, and not at this one."""
    rates, gateway = Rates(Quota(adds_per_s=2)), Hall().gateway()
    await gateway.start()
    took = [(await ask(gateway, rates, "PUT", f"/d{n}", "op=MKDIRS"))[1] for n in range(6)]
    assert took[:2] == [0, 0] and 1.9 <= sum(took) <= 2.1
    for query in ("op=GETFILESTATUS", "op=LISTSTATUS", "op=OPEN"):
        assert (await ask(gateway, rates, "GET", "/d0", query))[1] == 0
    assert (await ask(gateway, rates, "PUT", "/f", "op=CREATE"))[1] == 0, "a redirect changes nothing"
    assert (await ask(gateway, rates, "PUT", "/f", f"op=CREATE{STEP_TWO}", 3))[1] > 0.4
    assert (await ask(gateway, rates, "DELETE", "/f", "op=DELETE"))[1] > 0.4
    assert (await ask(gateway, rates, "PUT", "/g", "op=MKDIRS", caller=Caller("other")))[1] == 0
    await gateway.close()


@pytest.mark.rule("X32")
@pytest.mark.parametrize("path", ["/c/file", "/logs/app.inprogress"])
def test_an_upload_comes_in_at_its_callers_rate_and_is_whole(path: str) -> None:
    @in_virtual_time
    async def story() -> None:
        rates, gateway = Rates(Quota(bytes_per_s=1000)), Hall().gateway()
        await gateway.start()
        reply, took = await ask(gateway, rates, "PUT", path, f"op=CREATE{STEP_TWO}", *[1000] * 6)
        assert reply.status == 201 and 3.9 <= took <= 5.1
        node = (await gateway.owner()).namespace.find(path).node
        assert node is not None and getattr(node, "length", 0) == 6000
        await gateway.close()

    story()


@pytest.mark.rule("X32")
@in_virtual_time
async def test_what_would_wait_too_long_is_refused_with_the_time_to_come_back_at() -> None:
    """429 and Retry-After for who speaks HTTP, a RetriableException for Hadoop's client."""
    rates, gateway = Rates(Quota(bytes_per_s=10, adds_per_s=1)), Hall().gateway()
    await gateway.start()
    asking = [asyncio.ensure_future(ask(gateway, rates, "PUT", f"/d{n}", "op=MKDIRS")) for n in range(30)]
    answers = [await each for each in asking]
    refused = [(reply, took) for reply, took in answers if reply.status == 429]
    assert 10 <= len(refused) <= 20 and all(took <= WAIT_S for _, took in answers)
    for reply, _ in refused:
        assert reply.retry_after_s is not None and reply.retry_after_s >= 1
        assert b"org.apache.hadoop.ipc.RetriableException" in reply.body
        assert b"the quota adds_per_s of principal etl, 1, is used up" in reply.body
    made = (await gateway.owner()).namespace.root.children
    assert len(made) == 30 - len(refused), "nothing was done of what was refused"
    await gateway.close()


@pytest.mark.rule("S3")
@in_virtual_time
async def test_one_that_stands_by_says_so_whatever_the_rates_are() -> None:
    lease, rates = Switch(), Rates(Quota(adds_per_s=1))
    gateway = Hall().gateway(lease)
    await gateway.start()
    assert rates.permissions.charge(ETL, 100, 0) is None
    lease.is_held = False
    asyncio.get_running_loop().call_later(0.3, lease.seen_with, "other:1")
    reply, _ = await ask(gateway, rates, "PUT", "/b", "op=MKDIRS")
    assert reply.status == 403 and b"StandbyException" in reply.body
    await gateway.close()
