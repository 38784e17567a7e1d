"""What the two tenants do, and what is tried.

    the cluster    metadata, three bookies with TLS that ask for certificates, a gateway of streams; each a process
    the policy     the tenants red and blue, each with the ledgers of its name; blue may add few entries a second
    reading        each reads all ledgers of the other, with the passwords from the metadata
    fencing        blue fences a ledger that red writes, which would end its writer
    forging        blue writes an entry, sealed with the right password, where red's next entry would go
    squatting      blue writes first into a ledger that red has made
    certificate    an old certificate of red's is revoked, and used
    token          a token for red's streams is stolen, taken back, and used
    flood          blue writes as fast as it goes

With ``sabotage`` there is no policy. The metadata are a file here that everybody may write; a cluster of several teams
keeps them to its servers (docs/security.md, "The boundary").
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.amounts import counted
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from bookkeeper.net.tls import TlsConfig
from bookkeeper.secret import Secret
from examples.certificates import Authority, Certificate
from examples.demo_kit.cluster import DemoError, listens
from examples.demo_kit.slow_machine import client_config
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.demo_tenants.attacks import admitted_at_most, end_writer, flood, forge, read_all
from examples.demo_tenants.tenants import TenantProgram
from examples.demo_tenants.verdict import Loot
from examples.demo_tenants.view import TenantsView
from examples.processes import Child, Children
from segments.errors import StreamError
from segments.remote import connect as connect_gateway
from segments.remote.gateway_address import GatewayCredentials

BOOKIES: Final = ("b1", "b2", "b3")
SERVER: Final = "spiffe://demo/bookie"
GATEWAY: Final = "spiffe://demo/gateway"
RELOAD_S: Final = 1
ADDS_PER_S: Final = 100
"""Blue's quota."""

ADD_TIMEOUT_MS: Final = 6000
"""How long a tenant's program waits for one of its own adds."""

_TLS: Final = """
[tls]
cert = "{cert}"
key = "{key}"
client_ca = "{ca}"
mode = "required"
reload_interval_s = {reload}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsPlan(DemoPlan):
    """What a person may choose, and how long things take."""

    flood_s: float = 4.0
    pace: float = 20.0
    """Entries a second of each tenant's program: less than its quota."""


@dataclass(slots=True)
class TenantsFacts:
    """What was done, for the table and the last line."""

    tried: int = 0
    """Attacks."""
    flood: int = 0
    """Entries that were acknowledged in the flood."""
    flood_s: float = 0.0
    stolen_before: int = 0
    """Records that the stolen token got before anybody knew."""


class TenantsStory(DemoStory[TenantsPlan, TenantsView, TenantsFacts, Loot]):
    """The whole of it."""

    def __init__(self, plan: TenantsPlan, children: Children, view: TenantsView) -> None:
        super().__init__(plan, children, view, TenantsFacts())
        self._authority: Authority
        self._trust = plan.directory / "clients.pem"
        self._tokens = plan.directory / "tokens.json"
        self._gateway_port = 0
        self._red: TenantProgram
        self._blue: TenantProgram

    @property
    def loot(self) -> Loot:
        found: Loot = self.picture.loot
        return found

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._read_each_other,
            self._end_reds_writer,
            self._forge_an_entry,
            self._squat,
            self._use_revoked_certificate,
            self._use_stolen_token,
            self._flood,
        )

    # -- the cluster --------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.view.waits("certificates, the metadata store, three bookies and a gateway")
        self._authority = await asyncio.to_thread(Authority, self.plan.directory / "authority")
        self._trust_files(self._authority.ca)
        bookie = self._authority.server("bookie", uris=[SERVER])
        self.cluster.bookie_settings = _TLS.format(cert=bookie.cert, key=bookie.key, ca=self._trust, reload=RELOAD_S)
        await self.cluster.start_metadata()
        for name in BOOKIES:
            await self.cluster.start_bookie(name)
        operator = self._authority.client("operator")
        self.cluster.more_environment = self._shown(operator)
        self.client = await self._connect(operator)
        await self.cluster.until(self._are_up, "three bookies")
        if self.plan.sabotage:
            self.view.happened("three bookies with TLS are up; SABOTAGE: there is no access policy")
        else:
            await self._make_policy()
            self.view.happened("three bookies with TLS are up, and the access policy is enforced")
        await self._start_gateway()
        self._red = await self._begin("red")
        self._blue = await self._begin("blue")
        self.view.happened("the tenants red and blue write, each into its own ledgers")

    async def _are_up(self) -> bool:
        return set(BOOKIES) <= set(await self.client.metadata_store.bookies.writable())

    def _shown(self, certificate: Certificate) -> dict[str, str]:
        return {"BK_TLS_CA": self._authority.ca, "BK_TLS_CERT": certificate.cert, "BK_TLS_KEY": certificate.key}

    async def _connect(self, certificate: Certificate) -> BookKeeper:
        tls = TlsConfig(ca=self._authority.ca, cert=certificate.cert, key=certificate.key)
        opening = BookKeeper.connect(
            self.cluster.uri, config=client_config(ClientConfig(tls=tls, add_timeout_ms=ADD_TIMEOUT_MS))
        )
        return await self.stack.enter_async_context(opening)

    async def _make_policy(self) -> None:
        quota = ("--quota", f"adds_per_s={ADDS_PER_S}")
        for words in (
            ("grant", SERVER, "repair", "cluster"),
            ("grant", "operator", "administer", "cluster"),
            ("grant", GATEWAY, "append,read,recover,create,delete", "streams:/"),
            ("grant", GATEWAY, "append,read,recover,create,delete", f"ledgers:{GATEWAY}"),
            ("grant", "token:red-app", "append,read,recover,create", "streams:red"),
            ("tenant", "set", "red", "--member", "role:red", "--owns", "ledgers:red"),
            ("tenant", "set", "blue", "--member", "role:blue", "--owns", "ledgers:blue", *quota),
            ("enforce",),
        ):
            status, said = await self.cluster.bk("access", *words)
            if status:
                raise DemoError(f"`bk access {' '.join(words)}` has failed: {said}")
        newest = json.loads((await self.cluster.bk("access", "list", "--json"))[1])

        async def followed() -> bool:
            servers = {each.name: each for each in await self.client.metadata_store.access_servers.reports()}
            changed = newest["changes"][-1]["at_ms"]
            return all(name in servers and servers[name].changed_ms == changed for name in BOOKIES)

        await self.cluster.until(followed, "bookies that follow the policy")

    async def _start_gateway(self) -> None:
        self._gateway_port = free_port()
        gateway = self._authority.client("gateway", uris=[GATEWAY])
        before, self.cluster.more_environment = self.cluster.more_environment, self._shown(gateway)
        self._token = await self._new_token()
        child: Child = await self.cluster.start_gateway(
            "gateway", "grpc", self._gateway_port, "--token-file", str(self._tokens), "--reload-s", str(RELOAD_S)
        )
        self.cluster.more_environment = before
        await self.cluster.until(lambda: listens(self._gateway_port), "the gateway", child)

    async def _new_token(self) -> str:
        """A token for red's streams. What the file had before is taken back, by one rename."""
        new = self._tokens.with_suffix(".new")
        status, said = await self.cluster.bk("gateway", "token", "red-app", "--token-file", str(new), "--root", "/red")
        if status:
            raise DemoError(f"no token could be made: {said}")
        os.replace(new, self._tokens)
        return said.split()[-1]

    async def _begin(self, tenant: str) -> TenantProgram:
        certificate = self._authority.client(f"{tenant}-app", units=[f"0:{tenant}"])
        program = TenantProgram(await self._connect(certificate), tenant, self.plan.pace)
        self.picture.programs.append(program)
        self.beside(program.run(), tenant)
        await self.within(_until(lambda: program.acknowledged > 0 or bool(program.ended)), f"{tenant} writes")
        if program.ended:
            raise DemoError(f"{tenant} cannot write its own ledger: {program.ended}")
        return program

    # -- what is tried ------------------------------------------------------------------------------------

    async def _read_each_other(self) -> None:
        self.facts.tried += 2
        self.loot.read += await read_all(self._blue.client, list(self._red.written))
        self.loot.read += await read_all(self._red.client, list(self._blue.written))
        self.view.happened(f"blue and red tried to read each other's ledgers: {counted(self.loot.read, 'entry')}")

    async def _end_reds_writer(self) -> None:
        self.facts.tried += 1
        self.loot.ended += await end_writer(self._blue.client, await self._reds_open())
        self.view.happened(f"blue tried to end red's writer: {counted(self.loot.ended, 'bookie')} fenced it")

    async def _reds_open(self) -> int:
        red = self._red
        await self.within(_until(lambda: red.open is not None or bool(red.ended)), "red writes a ledger")
        return red.open if red.open is not None else next(reversed(red.written))

    async def _forge_an_entry(self) -> None:
        self.facts.tried += 1
        ledger = await self._reds_open()
        self.loot.forged += await forge(self._blue.client, ledger, len(self._red.written[ledger]) + 2)
        self.view.happened(f"blue tried to forge an entry of red's: {self.loot.forged} copies were taken")

    async def _squat(self) -> None:
        self.facts.tried += 1
        made = await self._red.ledger()
        self.loot.squatted += await forge(self._blue.client, made.id, 0)
        payload = b"red 0"
        try:
            async with made:
                await made.append(payload)
            self._red.written[made.id].append(payload)
        except BookKeeperError as error:
            self.loot.lost.append(f"red cannot write the ledger that it made: {in_words(error)}")
        self.view.happened(f"blue tried to write first into a ledger that red made: {self.loot.squatted} copies")

    async def _use_revoked_certificate(self) -> None:
        self.facts.tried += 1
        old = self._authority.client("red-laptop", units=["0:red"])
        before = await read_all(await self._connect(old), list(self._red.written)[:1])
        if not before:
            self.loot.lost.append("red's other certificate, a good one, could not read red's ledger")
        self._trust_files(self._authority.ca, await asyncio.to_thread(self._authority.revocations, old))

        async def attempt() -> int:
            return await read_all(await self._connect(old), list(self._red.written)[:1])

        self.loot.by_revoked += await self._after_a_while(attempt)
        self.view.happened(f"a certificate of red's was revoked; it read {before} before, {self.loot.by_revoked} after")

    def _trust_files(self, *files: str) -> None:
        """Let bookies trust the authority, by one renamed file that has also its revocations."""
        new = self._trust.with_suffix(".new")
        new.write_bytes(b"".join(Path(file).read_bytes() for file in files))
        os.replace(new, self._trust)

    async def _after_a_while(self, attempt: Callable[[], Awaitable[int]]) -> int:
        """What an attempt gets when the servers have had time to learn of something: it is repeated until it gets
        nothing, within the plan's limit, and then three times more."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.plan.limit_s * stretch() / 2
        got = await attempt()
        while got and loop.time() < end:
            await asyncio.sleep(RELOAD_S / 2)
            got = await attempt()
        return got + sum([await attempt() for _ in range(3)])

    async def _use_stolen_token(self) -> None:
        self.facts.tried += 1
        stolen = self._token
        await self._append("red/orders", stolen, create=True)
        self.facts.stolen_before = await self._read("red/orders", stolen)
        self._token = await self._new_token()

        async def attempt() -> int:
            return await self._read("red/orders", stolen) + await self._append("red/orders", stolen)

        self.loot.by_stolen_token += await self._after_a_while(attempt)
        if not await self._append("red/orders", self._token):
            self.loot.lost.append("red's new token, a good one, could not append to red's stream")
        self.view.happened(
            f"a token of red's was stolen; after it was taken back it was good for {self.loot.by_stolen_token} uses"
        )

    async def _append(self, stream: str, token: str, *, create: bool = False) -> int:
        try:
            async with self._gateway(token) as namespace:
                if create:
                    await namespace.create(stream)
                async with await (await namespace.open(stream)).writer() as writer:
                    await writer.append(b"red")
            return 1
        except StreamError:
            return 0

    async def _read(self, stream_name: str, token: str) -> int:
        try:
            async with self._gateway(token) as namespace:
                stream = await namespace.open(stream_name)
                async with stream.read() as reader:
                    return len([record async for record in reader])
        except StreamError:
            return 0

    def _gateway(self, token: str) -> Any:
        access = GatewayCredentials(token=Secret(token))
        return connect_gateway(f"grpc://127.0.0.1:{self._gateway_port}", access=access)

    async def _flood(self) -> None:
        self.facts.tried += 1
        before = self._red.acknowledged
        self.facts.flood, self.facts.flood_s = await flood(self._blue, self.plan.flood_s)
        allowed = admitted_at_most(ADDS_PER_S, self.facts.flood_s)
        self.loot.over_quota += max(0, self.facts.flood - allowed)
        self.view.happened(
            f"blue wrote as fast as it could: {counted(self.facts.flood, 'entry')} in {self.facts.flood_s:.1f} s, "
            f"and red {self._red.acknowledged - before} meanwhile"
        )

    # -- the end ------------------------------------------------------------------------------------------

    async def judge(self) -> Loot:
        loot = self.loot
        for program in (self._red, self._blue):
            program.stop()
        await self.within(asyncio.gather(*self.tasks), "the tenants end")
        self.view.waits("each tenant reads back everything that it wrote")
        for program in (self._red, self._blue):
            if program.ended:
                loot.lost.append(f"{program.tenant} could not go on writing: {program.ended}")
            loot.lost += await program.read_back()
            loot.own += program.acknowledged
        return loot


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - whoever waits has a limit
        await asyncio.sleep(0.05)
