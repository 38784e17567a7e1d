"""The table of routes, and which of them a request means. Data, and one decision. Pure.

Paths, methods and the answers to other methods are those of Apache's ``HttpRouter`` and its services. The tables of
docs/compatibility.md are made from this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.http_api_config import ACTIONS


class Scope(Enum):
    """Whom a route is about."""

    CLUSTER = "cluster"
    """It is answered by every server."""
    BOOKIE = "bookie"
    """It is answered by bookies alone."""


@dataclass(frozen=True, slots=True)
class RouteMethod:
    """What one method of a route needs and does."""

    text: str
    """For people: what it answers, and how that differs from Apache's answer."""
    action: str | None = None
    """The word that switches it on; None: it changes nothing, and is always on."""
    params: str = ""
    """Its parameters, for people."""
    open: bool = False
    """It tells of this bookie's health, and asks for no token."""


@dataclass(frozen=True, slots=True)
class Route:
    """One path."""

    path: str
    scope: Scope
    methods: Mapping[str, RouteMethod]
    otherwise: tuple[int, str] = (404, "Not found method. Should be GET method")
    """Status and text for other methods."""


class Match(NamedTuple):
    """The route that a request means."""

    route: Route
    method: RouteMethod


METHODS: Final = ("GET", "PUT", "POST", "DELETE")
"""Methods that routes know; others are answered 405."""

_PUT: Final = (404, "Not found method. Should be PUT method")


def _action(text: str, action: str, params: str = "") -> RouteMethod:
    assert action in ACTIONS, action
    return RouteMethod(text, action, params)


def _open_get(text: str) -> RouteMethod:
    return RouteMethod(text, open=True)


_LEDGER: Final = "/api/v1/ledger"
_BOOKIE: Final = "/api/v1/bookie"
_AUTORECOVERY: Final = "/api/v1/autorecovery"

_ALL: Final = (
    Route("/heartbeat", Scope.CLUSTER, dict.fromkeys(METHODS, _open_get("`OK`"))),
    Route(
        "/metrics",
        Scope.CLUSTER,
        {"GET": _open_get("for Prometheus; [names](#names-of-metrics)")},
        (403, "{method} is forbidden. Should be GET method"),
    ),
    Route(
        "/api/v1/config/server_config",
        Scope.CLUSTER,
        {
            "GET": RouteMethod("the settings, under our names; those that could hold a secret are left out"),
            "PUT": RouteMethod(
                "not supported: settings are read when the process starts; Apache's keeps a changed value "
                "in memory, and most of its parts never look at it"
            ),
        },
        (404, "Request body not found. should contains k-v pairs"),
    ),
    Route(
        f"{_LEDGER}/list",
        Scope.CLUSTER,
        {
            "GET": RouteMethod(
                "ids, or with `print_metadata=true` what is known of each; passwords are left out. The answer "
                "is sent as it is made, so no number of ledgers needs memory",
                params="`print_metadata`, `decode_meta`, `page`",
            )
        },
    ),
    Route(
        f"{_LEDGER}/metadata",
        Scope.CLUSTER,
        {"GET": RouteMethod("what is known of a ledger; its password is left out", params="`ledger_id`")},
    ),
    Route(
        f"{_LEDGER}/read",
        Scope.CLUSTER,
        {
            "GET": RouteMethod(
                "entries as text, up to the last one confirmed, sent as they are read; the access policy must "
                "let the caller read this ledger",
                params="`ledger_id`, `start_entry_id`, `end_entry_id`, `page`",
            )
        },
        (404, "Not found method. Should be GET method, with ledger_id provided"),
    ),
    Route(
        f"{_LEDGER}/delete",
        Scope.CLUSTER,
        {
            "DELETE": _action(
                "a ledger that is open is recovered and closed first, and can be brought back for a time "
                "(`bk ledger undelete`)",
                "delete-ledger",
                params="`ledger_id`",
            )
        },
        (404, "Not found method. Should be DELETE method"),
    ),
    Route(
        f"{_BOOKIE}/list_bookies",
        Scope.CLUSTER,
        {"GET": RouteMethod("ids, with host names if asked for", params="`type` (`rw`, `ro`), `print_hostnames`")},
    ),
    Route(
        f"{_BOOKIE}/list_bookie_info",
        Scope.CLUSTER,
        {"GET": RouteMethod("free and total bytes of each bookie that answers, writable or read-only")},
    ),
    Route(
        f"{_BOOKIE}/last_log_mark",
        Scope.BOOKIE,
        {
            "GET": RouteMethod(
                "for each journal its newest file and the last group that is durable, where Apache's has the "
                "position up to which entries are in their logs"
            )
        },
    ),
    Route(
        f"{_BOOKIE}/list_disk_file",
        Scope.BOOKIE,
        {
            "GET": RouteMethod(
                "names of the files of journals, entry logs and index segments",
                params="`file_type` (`journal`, `entrylog`, `index`)",
            )
        },
    ),
    Route(
        f"{_BOOKIE}/expand_storage",
        Scope.BOOKIE,
        {
            "PUT": RouteMethod(
                "not supported: `bk bookie add-directory` adds a directory while the bookie runs, and takes its "
                "name, which this route has no place for"
            )
        },
        _PUT,
    ),
    Route(
        f"{_BOOKIE}/gc",
        Scope.BOOKIE,
        {
            "GET": _open_get("whether compaction runs"),
            "PUT": _action(
                "begins a pass that looks for deleted ledgers and compacts; `forceMajor` takes logs that "
                "are mostly alive, too",
                "collect-garbage",
            ),
        },
        (405, "Not allowed method. Should be PUT to trigger GC, Or GET to get Force GC state."),
    ),
    Route(
        f"{_BOOKIE}/gc_details",
        Scope.BOOKIE,
        {"GET": _open_get("the number of compactions; minor and major ones are not told apart")},
        (404, "Only support GET method to retrieve GC details. If you want to trigger gc, send a PUT to gc endpoint."),
    ),
    Route(
        f"{_BOOKIE}/gc/suspend_compaction",
        Scope.BOOKIE,
        {
            "GET": _open_get("whether an operator has suspended compaction"),
            "PUT": _action("minor and major compaction are one thing here: either word suspends both", "compaction"),
        },
        (404, "Not found method. Should be PUT to suspend major or minor compaction, Or GET to get compaction state."),
    ),
    Route(
        f"{_BOOKIE}/gc/resume_compaction",
        Scope.BOOKIE,
        {"PUT": _action("either word resumes both", "compaction")},
        (404, "Not found method. Should be PUT to resume major or minor compaction, Or GET to get compaction state."),
    ),
    Route(
        f"{_BOOKIE}/state",
        Scope.BOOKIE,
        {"GET": _open_get("running, read-only, shutting down")},
        (404, "Only support GET method to retrieve bookie state."),
    ),
    Route(
        f"{_BOOKIE}/state/readonly",
        Scope.BOOKIE,
        {
            "GET": _open_get("read-only or not"),
            "PUT": _action(
                "an order as `bk bookies read-only` gives it: it outlives a restart; a bookie whose disk is "
                "full, or whose settings say so, stays read-only",
                "read-only",
            ),
        },
        (404, "Unsupported method. Should be GET or PUT method"),
    ),
    Route(
        f"{_BOOKIE}/sanity",
        Scope.BOOKIE,
        {
            "GET": _open_get(
                "what a write would meet: Apache's writes and reads a ledger for each probe, ours tells what it knows"
            )
        },
        (404, "Only support GET method to retrieve bookie sanity state."),
    ),
    Route(
        f"{_BOOKIE}/is_ready",
        Scope.BOOKIE,
        {
            "GET": _open_get(
                "200, or 503 while the bookie stops or its disk has failed; it speaks of this bookie only, "
                "creates nothing, and a metadata store that is away does not change it"
            )
        },
        (404, "Only support GET method check if bookie is ready."),
    ),
    Route(
        f"{_BOOKIE}/info",
        Scope.BOOKIE,
        {"GET": _open_get("free and total bytes")},
        (404, "Only GET is supported."),
    ),
    Route(
        f"{_BOOKIE}/cluster_info",
        Scope.CLUSTER,
        {"GET": RouteMethod("auditor, marks, and how many bookies are writable, read-only and away")},
        (404, "Only GET is supported."),
    ),
    Route(
        f"{_BOOKIE}/entry_location_compact",
        Scope.BOOKIE,
        {
            "GET": RouteMethod("`{}`: there is no RocksDB here, as in Apache's other storages"),
            "PUT": RouteMethod("not supported for the same reason: index segments are merged by themselves"),
        },
        (
            405,
            "Not found method. Should be PUT to trigger entry location compact, Or GET to get entry location compact "
            "state.",
        ),
    ),
    Route(
        f"{_AUTORECOVERY}/status",
        Scope.CLUSTER,
        {
            "GET": RouteMethod("whether autorecovery is enabled"),
            "PUT": _action("as `bk autorecovery enable` and `disable`", "switch-autorecovery", "`enabled`"),
        },
        (404, "Not found method. Should be GET or PUT method"),
    ),
    Route(
        f"{_AUTORECOVERY}/bookie",
        Scope.CLUSTER,
        {
            "PUT": _action(
                "moves the ledgers of all of `bookie_src` in the background, to `bookie_dest` if that is "
                "given; Apache's looks at the first source and no destination. A bookie that nobody knows is "
                "refused with 404, and with 409 what is under way with other parameters",
                "recover-bookie",
            )
        },
        _PUT,
    ),
    Route(
        f"{_AUTORECOVERY}/list_under_replicated_ledger",
        Scope.CLUSTER,
        {
            "GET": RouteMethod(
                "ids, or with `printmissingreplica` the bookies that lack entries",
                params="`missingreplica`, `excludingmissingreplica`, `printmissingreplica`",
            )
        },
    ),
    Route(f"{_AUTORECOVERY}/who_is_auditor", Scope.CLUSTER, {"GET": RouteMethod("its id, as text")}),
    Route(
        f"{_AUTORECOVERY}/trigger_audit",
        Scope.CLUSTER,
        {"PUT": _action("as `bk autorecovery trigger`", "trigger-audit")},
        _PUT,
    ),
    Route(
        f"{_AUTORECOVERY}/lost_bookie_recovery_delay",
        Scope.CLUSTER,
        {
            "GET": RouteMethod("seconds, as text"),
            "PUT": _action("as `bk autorecovery trigger --delay`", "lost-bookie-delay"),
        },
        _PUT,
    ),
    Route(
        f"{_AUTORECOVERY}/decommission",
        Scope.CLUSTER,
        {
            "PUT": _action(
                "moves the ledgers of `bookie_src` in the background, and with `delete_cookie` waits until "
                "they are whole and forgets the bookie. A bookie that nobody knows is refused with 404, and with 409 "
                "what is under way with other parameters",
                "decommission",
            )
        },
        _PUT,
    ),
)

ROUTES: Final[Mapping[str, Route]] = {route.path: route for route in _ALL}
"""By path, without a slash at its end; with one it is the same."""


def find(method: str, path: str, *, is_bookie: bool) -> Match | PageReply:
    """The route that a request means, or what is answered if it means none."""
    if method not in METHODS:
        return PageReply(405, "there are GET, PUT, POST and DELETE")
    route = ROUTES.get(path.removesuffix("/") if len(path) > 1 else path)
    if route is None:
        return PageReply(404, "there is no such route")
    if route.scope is Scope.BOOKIE and not is_bookie:
        return PageReply(404, "this process is no bookie: ask the bookie itself")
    if (found := route.methods.get(method)) is None:
        status, text = route.otherwise
        return PageReply(status, text.format(method=method))
    return Match(route, found)


def table() -> list[str]:
    """The rows of the table in docs/compatibility.md."""
    rows = []
    for route in _ALL:
        methods = {"any": route.methods["GET"]} if len(route.methods) == len(METHODS) else route.methods
        for name, method in methods.items():
            needs = "nothing" if method.open else "a token" if method.action is None else f"`{method.action}`"
            params = f" ({method.params})" if method.params else ""
            rows.append(f"| `{name} {route.path}`{params} | {needs} | {route.scope.value} | {method.text} |")
    return rows
