"""The server of the console.

A connection's thread receives a request's head. The loop says who sends it; the thread makes the page from what is
kept in memory, so that a page does not wait while ledgers are being read.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

from bookkeeper.audit import AuditAction, AuditLog
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.health.health_pages import BodyError, PageRequest
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.tasks import Tasks
from bookkeeper.console.actions import ActionRequest, Actions
from bookkeeper.console.config import ACTIONS, ConsoleConfig
from bookkeeper.console.pages import Pages
from bookkeeper.console.panel_book import PanelBook, UnusablePanel
from bookkeeper.console.panels import Panel, PanelContext
from bookkeeper.console.picture import LedgersReader, picture_of_bookies
from bookkeeper.console.resident import Resident
from bookkeeper.console.templates import ASSETS, asset, html
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.gateways.authentication import RefusalTexts
from bookkeeper.http_api.admission import RefusalPhrases, RequestAdmission
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.request import DENIED, RefusedRequestError, parameters
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

ACTION_S: Final = 60.0
"""Seconds after which an action is given up; what goes on in the background is not counted."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load: its own script, style and sign, and nothing from elsewhere."""
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_ASKS: Final = ("WWW-Authenticate", 'Basic realm="BookKeeper: the password is a token", charset="UTF-8"')


def _switched_off(action: str) -> str:
    return f"this console does not {ACTIONS[action]}: switch that on with --actions {action}"


_WANTED: Final = "This console wants a token as the password and none came - bk gateway token makes one"

WORDS: Final = RefusalPhrases("console", "the console", RefusalTexts(no_token=_WANTED), _switched_off)


class ConsoleServer:
    """The console of one process. :meth:`start` once, :meth:`close` once."""

    def __init__(
        self,
        config: ConsoleConfig,
        client: BookKeeper,
        *,
        name: str,
        metadata_uri: str,
        panels: Sequence[Panel] = (),
        unusable: Sequence[UnusablePanel] = (),
        metrics: Metrics,
        audit: AuditLog,
    ) -> None:
        """
        Args:
            name: of the process, for others.
            metadata_uri: the cluster's address, for panels.

        Raises:
            ConfigError: the file of tokens or the certificate cannot be used.
        """
        self._config = config
        seams, metadata = client.services.seams, client.metadata_store
        self._workers, self._metrics = seams.workers, metrics
        self._admission = RequestAdmission(config, metadata, seams, metrics, audit, name, WORDS)
        self._reader = LedgersReader(metadata)
        self._bookies = Resident(
            lambda: picture_of_bookies(client), seams.clock, every_s=config.refresh_s, idle_s=config.idle_s
        )
        self._ledgers = Resident(
            self._reader.picture, seams.clock, every_s=config.ledgers_refresh_s, idle_s=config.idle_s
        )
        self._panels = PanelBook(panels, unusable, PanelContext(client, metadata_uri, seams.clock))
        self._background = BackgroundWork(self._ended)
        self._actions = Actions(client, self._background, name, self._admission.require)
        self._pages = Pages(
            config,
            client,
            self._bookies,
            self._ledgers,
            self._reader,
            self._panels,
            lambda: self._background.running,
            seams.clock,
        )
        self._tasks = Tasks("console")
        self._loop = asyncio.get_running_loop()
        self._server: HealthServer | None = None

    @property
    def address(self) -> Address:
        """Where it serves."""
        assert self._server is not None, "not started"
        return self._server.address

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"{'http' if self._config.tls_cert is None else 'https'}://{self.address}/"

    async def start(self) -> None:
        """Serve. Raises: OSError: the address cannot be had; MetadataError: the store does not answer."""
        await self._admission.start()
        self._tasks.start(self._admission.watch(), "follow tokens and policy")
        self._tasks.start(self._bookies.run(), "look at bookies")
        self._tasks.start(self._ledgers.run(), "read ledgers")
        self._tasks.start(self._panels.run(), "read panels")
        wanted = Address.parse(self._config.listen)
        worker = self._workers.worker("console")
        try:
            self._server = HealthServer.start(
                wanted, {}, self._metrics, lambda: None, worker, self._answer, self._admission.secure
            )
        except OSError as error:
            await self.close()
            text = f"cannot listen at {wanted} for the console: {in_words(error)}; choose another --listen"
            raise OSError(error.errno, text) from error

    async def close(self) -> None:
        """Serve no more. Idempotent."""
        server, self._server = self._server, None
        await self._tasks.close()
        await self._background.close()
        self._reader.close()
        if server is not None:
            server.close()

    # -- in a connection's thread -----------------------------------------------------------------------------

    def _answer(self, request: PageRequest) -> PageReply:
        try:
            reply = self._reply(request)
        except RefusedRequestError as error:
            reply = PageReply(error.status, str(error))
        except (BookKeeperError, OSError) as error:
            reply = PageReply(500, f"The page cannot be made: {in_words(error)}")
        except CancelledError:
            reply = PageReply(503, "The console is being stopped")
        except Exception:  # unexpected, and logged as such; the process goes on
            log.exception("a request to the console ended unexpectedly")
            reply = PageReply(500, "It ended unexpectedly: the log of the console says how")
        return reply._replace(headers=(*reply.headers, *HEADERS))

    def _reply(self, request: PageRequest) -> PageReply:
        path = _path(request)
        if request.method == "POST":
            return self._act(request, path)
        if request.method not in ("GET", "HEAD"):
            return PageReply(405, "The console answers GET, and POST for actions")
        if path.startswith("/static/"):
            return _static(path.removeprefix("/static/"))
        shown = request if request.token is not None else _with_password(request)
        caller = self._on_loop(self._admission.admit(shown, None, f"{request.method} {path.split('/')[1]}"))
        if isinstance(caller, PageReply):
            more = (_ASKS,) if caller.asks_for_token else ()
            return caller._replace(asks_for_token=False, headers=more)
        view = self._pages.page(path, parameters(request.query), self._on_loop)
        return PageReply(view.code, html(view, self._pages.navigation), content_type="text/html; charset=utf-8")

    def _act(self, request: PageRequest, path: str) -> PageReply:
        """Change something. The token comes in a header that no web page sends unasked: a password is none."""
        action = path.removeprefix("/actions/")
        if not path.startswith("/actions/") or action not in ACTIONS:
            return PageReply(404, "There is no such action")
        on = f"{request.method} {path}"
        caller = self._on_loop(self._admission.admit(request, action, on))
        if isinstance(caller, PageReply):
            return caller._replace(asks_for_token=False)
        try:
            asked = ActionRequest.parse(action, request.read_body(), caller.name, request.host)
        except BodyError as error:
            return error.reply
        return self._on_loop(self._carry_out(asked, request, on))

    # -- on the loop ------------------------------------------------------------------------------------------

    async def _carry_out(self, asked: ActionRequest, request: PageRequest, on: str) -> PageReply:
        self._admission.require_still(request, asked.action, on)  # receiving the body may have taken long
        try:
            async with asyncio.timeout(ACTION_S):
                reply = PageReply(200, await self._actions.carry_out(asked))
        except RefusedRequestError as error:
            reply = PageReply(error.status, str(error))
        except TimeoutError:  # before OSError, of which it is one
            reply = PageReply(500, f"It was not done within {ACTION_S:g} s: it may have been done, or be done yet")
        except (BookKeeperError, OSError) as error:
            reply = PageReply(500, in_words(error))
        what = AuditAction.DELETE if asked.action == "purge" else AuditAction.ADMINISTER
        done = reply.code == 200
        if reply.code != DENIED:  # that is noted already
            self._admission.audit.note(
                what, asked.caller, asked.host, asked.what, allowed=done, reason="" if done else str(reply.body)
            )
        for each in (self._bookies, self._ledgers):
            each.want()
        return reply

    def _ended(self, who: str, what: str, problem: str) -> None:
        self._admission.audit.note(
            AuditAction.ADMINISTER, who, "", f"end of {what}", allowed=not problem, reason=problem
        )
        for each in (self._bookies, self._ledgers):
            each.want()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop, and wait."""
        return asyncio.run_coroutine_threadsafe(self._bounded(work), self._loop).result()

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        found: T = await self._tasks.start(work, "request", awaited=True)
        return found


def _path(request: PageRequest) -> str:
    """The request's path as text, without a slash at its end. Raises: RefusedRequestError."""
    try:
        path = request.path.encode("latin-1").decode()
    except UnicodeError:
        raise RefusedRequestError("the path is no UTF-8", 400) from None
    if not path.startswith("/"):
        raise RefusedRequestError("the path does not begin with a slash", 400)
    return path.rstrip("/") or "/"


def _with_password(request: PageRequest) -> PageRequest:
    """A browser shows the token as a password. That suffices for reading: it sends it unasked."""
    return dataclasses.replace(request, token=request.password)


def _static(name: str) -> PageReply:
    if name not in ASSETS:
        return PageReply(404, "There is no such file")
    return PageReply(200, (asset(name),), content_type=ASSETS[name])
