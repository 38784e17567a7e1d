"""Who sends a request, and whether he may: his token, the routes that are on, the access policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bookkeeper.access import CLUSTER, Mode, Principal, PrincipalKind, Resource, Right
from bookkeeper.access.principal import NOBODY
from bookkeeper.audit import AuditAction, AuditLog
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.health.health_pages import PageRequest
from bookkeeper.bookie.http_api_config import ACTIONS
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.authentication import RefusalTexts, RequestCredentials, UnauthenticatedError
from bookkeeper.gateways.caller import EVERYWHERE, Caller
from bookkeeper.gateways.gateway_audit import GatewayAudit
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.http_api.request import DENIED, RefusedRequestError
from bookkeeper.meta import Metadata
from bookkeeper.meta.policy_follower import AccessReporter, PolicyFollower
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams

KIND: Final = "http api"
DELAYED_MAX: Final = 8
"""Refused requests that wait for their answer at a time."""
WANTED: Final = "This route wants a token and none came - bk gateway token makes one; send it as Authorization: Bearer"


OPEN: Final = Caller("", kind=PrincipalKind.NOBODY)
"""Whoever sends a request to a server that asks nobody."""


class AdmissionConfig(Protocol):
    """The settings that say who is let in."""

    @property
    def token_file(self) -> str | None:
        """The file of tokens; None: nobody is asked."""
        ...

    @property
    def tls_cert(self) -> str | None: ...

    @property
    def tls_key(self) -> str | None: ...

    def allows(self, action: str) -> bool:
        """Whether an action is switched on."""
        ...


class Asked(Protocol):
    """A request that was let in."""

    @property
    def caller(self) -> str:
        """The name in its token."""
        ...

    @property
    def host(self) -> str:
        """The address that it comes from."""
        ...

    @property
    def what(self) -> str:
        """What it asks for, in a line."""
        ...


@dataclass(frozen=True, slots=True)
class RefusalPhrases:
    """How a server speaks of itself to those whom it refuses."""

    kind: str
    """In the audit log, and among the servers that follow the access policy."""
    subject: str
    """What cannot read its files."""
    refusals: RefusalTexts
    switched_off: Callable[[str], str]
    """Says how an action is switched on."""


def _switched_off(action: str) -> str:
    return (
        f"this server does not {ACTIONS[action]} over HTTP: switch that on with --http-actions {action} "
        f'(actions = ["{action}"] in the table [http_api])'
    )


HTTP_API: Final = RefusalPhrases(KIND, "the HTTP API", RefusalTexts(no_token=WANTED), _switched_off)


def read_secrets(config: AdmissionConfig, seams: Seams, words: RefusalPhrases = HTTP_API) -> AccessControl:
    """Read the file of tokens and the certificate.

    Raises:
        ConfigError: one of them cannot be read, or others may read a secret; the text names it and says what to do.
    """
    tls = None
    if config.tls_cert is not None:
        tls = ServerTlsFiles(certificate=config.tls_cert, key=config.tls_key or config.tls_cert)
    try:
        return AccessControl(
            AccessConfig(token_file=config.token_file, tls=tls), seams.clock, seams.rng, words.refusals
        )
    except OSError as error:
        raise ConfigError(
            f"{words.subject} cannot read its files: {in_words(error)}; "
            f"`bk gateway token NAME --token-file {config.token_file}` makes a token and its file"
        ) from error


class RequestAdmission:
    """Decides for one server. Runs on the loop's thread.

    Raises:
        ConfigError: the file of tokens, the certificate or its key cannot be read, or others may read a secret.
    """

    def __init__(
        self,
        config: AdmissionConfig,
        metadata: Metadata,
        seams: Seams,
        metrics: Metrics,
        audit: AuditLog,
        name: str,
        words: RefusalPhrases = HTTP_API,
    ) -> None:
        self._config, self._words = config, words
        self._clock = seams.clock
        self._delayed = 0
        self._control = read_secrets(config, seams, words)
        reporter = AccessReporter(metadata.access_servers, words.kind, name)
        self._policy = PolicyFollower(metadata.access, seams.clock, metrics, reporter=reporter)
        self.audit = GatewayAudit(seams.clock, audit, f"{words.kind} {name}")

    @property
    def secure(self) -> Callable[[Any], Any] | None:
        """Makes a connection one over TLS, by the newest certificate; None: it stays as it is."""
        certificates = self._control.certificates
        if certificates is None:
            return None
        return lambda connection: certificates.context.wrap_socket(connection, server_side=True)

    async def start(self) -> None:
        """Read the policy. Raises: MetadataError: the store does not answer."""
        await self._policy.read()

    async def watch(self) -> None:
        """Follow the policy and the file of tokens, until cancelled."""
        await asyncio.gather(self._policy.run(), self._control.watch())

    async def admit(self, request: PageRequest, action: str | None, on: str) -> Caller | PageReply:
        """Who sends a request to what asks, or how it is refused. A wrong token waits, and longer each time.

        Args:
            action: the word that switches it on; None: it changes nothing.
            on: what it is about, for the audit log.
        """
        try:
            caller = self._caller(request.token)
        except UnauthenticatedError as error:
            self.audit.refused(request.host, error.why, error.claimed)
            await self._delay(request.host)
            return PageReply(401, str(error), asks_for_token=True)
        self.audit.admitted(caller.name, request.host)
        if (why := self._why_not(caller, action)) is None:
            return caller
        what = AuditAction.DENY if action is None else AuditAction.ADMINISTER
        self.audit.note(what, caller.name, request.host, on, allowed=False, reason=why)
        return PageReply(DENIED, why)

    def require_still(self, request: PageRequest, action: str | None, on: str) -> None:
        """Check that whoever was admitted would be admitted now: his token has not ended and was not taken out of the
        file, and no right was taken away. Asked while a long answer is sent.

        Raises:
            RefusedRequestError: he would not. It is noted.
        """
        name = ""
        try:
            caller = self._caller(request.token)
            name, why = caller.name, self._why_not(caller, action)
        except UnauthenticatedError as error:
            why = error.why
        if why is not None:
            reason = f"ended in its middle: {why}"
            self.audit.note(AuditAction.DENY, name, request.host, on, allowed=False, reason=reason)
            raise RefusedRequestError(f"it may go on no longer: {why}", DENIED)

    async def _delay(self, host: str) -> None:
        """Let who was refused wait. Each waits in a thread of the server, so only few do: the others are answered at
        once, and nobody guesses 256 bits by asking often."""
        delay_s = self._control.failures.delay_s(host)
        if self._delayed < DELAYED_MAX:
            self._delayed += 1
            try:
                await asyncio.sleep(delay_s)
            finally:
                self._delayed -= 1

    def require(self, asked: Asked, right: Right, on: Resource) -> None:
        """Check that a caller, who may administer the cluster, also has the right that needs what he asks for. What is
        refused is noted.

        Raises: RefusedRequestError: with the status DENIED.
        """
        if (why := self._policys_refusal(_principal(asked.caller), right, on)) is not None:
            self.audit.note(AuditAction.DENY, asked.caller, asked.host, asked.what, allowed=False, reason=why)
            raise RefusedRequestError(why, DENIED)

    def _caller(self, token: str | None) -> Caller:
        shown = RequestCredentials(token=token)
        try:
            found = self._control.authenticator.principal(shown, self._clock.wall_ms())
        except UnauthenticatedError:
            if token is None or not self._control.refresh_for_unknown_token():
                raise
            found = self._control.authenticator.principal(shown, self._clock.wall_ms())
        return found if found is not None else OPEN

    def _why_not(self, caller: Caller, action: str | None) -> str | None:
        reads = EVERYWHERE in caller.reads
        if caller.is_limited and not (reads and action is None):
            limits = "for reading only" if reads else f"below {caller.limits()}"
            return f"the token is valid {limits}; this route wants one that bk gateway token made without limits"
        if action is not None and not self._config.allows(action):
            return self._words.switched_off(action)
        principal = _principal(caller.name) if caller is not OPEN else NOBODY
        return self._policys_refusal(principal, Right.ADMINISTER, CLUSTER)

    def _policys_refusal(self, principal: Principal, right: Right, on: Resource) -> str | None:
        policy = self._policy.policy
        if policy.mode is Mode.OFF or (decision := policy.decide(principal, right, on)).allowed:
            return None
        self._policy.observations.note(principal, str(right), on)
        return decision.reason if policy.mode is Mode.ENFORCE else None


def _principal(name: str) -> Principal:
    return Principal(PrincipalKind.TOKEN, name, ())
