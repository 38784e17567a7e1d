"""What is asked of an HTTP server of a bookie, in order, and the shape of what it answers.

The same requests go to Apache's server (:mod:`tests.interop.http_routes.capture`) and to ours. What is compared is the
status, and the *shape* of the body: of JSON its names and the kinds of its values; of a text its words, without the
numbers and names that differ from run to run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Exchange(NamedTuple):
    """One request. ``{closed}``, ``{open}``, ``{doomed}`` and ``{none}`` stand for ledgers, ``{bookie}`` and
    ``{other}`` for bookies."""

    method: str
    target: str
    body: str | None = None

    @property
    def name(self) -> str:
        """What it is called in the files of captured replies."""
        return " ".join(filter(None, self))


class Reply(NamedTuple):
    """An answer."""

    status: int
    content_type: str | None
    body: str


_LEDGER: Final = "/api/v1/ledger"
_BOOKIE: Final = "/api/v1/bookie"
_AUTORECOVERY: Final = "/api/v1/autorecovery"

GROUPS: Final[Mapping[str, tuple[Exchange, ...]]] = {
    "server": (
        Exchange("GET", "/heartbeat"),
        Exchange("POST", "/heartbeat"),
        Exchange("GET", "/metrics"),
        Exchange("POST", "/metrics"),
        Exchange("GET", "/api/v1/config/server_config"),
        Exchange("PUT", "/api/v1/config/server_config"),
        Exchange("PUT", "/api/v1/config/server_config", "{}"),
        Exchange("DELETE", "/api/v1/config/server_config"),
        Exchange("GET", "/api/v1/nothing"),
        Exchange("PATCH", "/heartbeat"),
    ),
    "ledger": (
        Exchange("GET", f"{_LEDGER}/list"),
        Exchange("GET", f"{_LEDGER}/list/"),
        Exchange("GET", f"{_LEDGER}/list?print_metadata=true"),
        Exchange("GET", f"{_LEDGER}/list?print_metadata=true&decode_meta=true"),
        Exchange("GET", f"{_LEDGER}/list?print_metadata=true&decode_meta=true&page=1"),
        Exchange("GET", f"{_LEDGER}/list?print_metadata=true&page=2"),
        Exchange("GET", f"{_LEDGER}/list?print_metadata=true&page=x"),
        Exchange("PUT", f"{_LEDGER}/list"),
        Exchange("GET", f"{_LEDGER}/metadata?ledger_id={{closed}}"),
        Exchange("GET", f"{_LEDGER}/metadata?ledger_id={{open}}"),
        Exchange("GET", f"{_LEDGER}/metadata?ledger_id={{none}}"),
        Exchange("GET", f"{_LEDGER}/metadata?ledger_id=x"),
        Exchange("GET", f"{_LEDGER}/metadata"),
        Exchange("PUT", f"{_LEDGER}/metadata?ledger_id={{closed}}"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&start_entry_id=1&end_entry_id=1"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&start_entry_id=2"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&end_entry_id=100"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&start_entry_id=2&end_entry_id=1"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&start_entry_id=3&end_entry_id=5"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{closed}}&page=1"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id={{none}}"),
        Exchange("GET", f"{_LEDGER}/read?ledger_id=x"),
        Exchange("GET", f"{_LEDGER}/read"),
        Exchange("PUT", f"{_LEDGER}/read?ledger_id={{closed}}"),
        Exchange("GET", f"{_LEDGER}/delete?ledger_id={{doomed}}"),
        Exchange("DELETE", f"{_LEDGER}/delete"),
        Exchange("DELETE", f"{_LEDGER}/delete?ledger_id={{doomed}}"),
        Exchange("DELETE", f"{_LEDGER}/delete?ledger_id={{none}}"),
        Exchange("DELETE", f"{_LEDGER}/delete?ledger_id=x"),
    ),
    "bookie": (
        Exchange("GET", f"{_BOOKIE}/list_bookies"),
        Exchange("GET", f"{_BOOKIE}/list_bookies?type=rw&print_hostnames=true"),
        Exchange("GET", f"{_BOOKIE}/list_bookies?type=ro"),
        Exchange("PUT", f"{_BOOKIE}/list_bookies"),
        Exchange("GET", f"{_BOOKIE}/list_bookie_info"),
        Exchange("PUT", f"{_BOOKIE}/list_bookie_info"),
        Exchange("GET", f"{_BOOKIE}/last_log_mark"),
        Exchange("PUT", f"{_BOOKIE}/last_log_mark"),
        Exchange("GET", f"{_BOOKIE}/list_disk_file"),
        Exchange("GET", f"{_BOOKIE}/list_disk_file?file_type=journal"),
        Exchange("GET", f"{_BOOKIE}/list_disk_file?file_type=entrylog"),
        Exchange("GET", f"{_BOOKIE}/list_disk_file?file_type=index"),
        Exchange("PUT", f"{_BOOKIE}/list_disk_file"),
        Exchange("GET", f"{_BOOKIE}/expand_storage"),
        Exchange("PUT", f"{_BOOKIE}/expand_storage"),
        Exchange("GET", f"{_BOOKIE}/gc"),
        Exchange("PUT", f"{_BOOKIE}/gc"),
        Exchange("PUT", f"{_BOOKIE}/gc", '{"forceMajor": true, "forceMinor": false}'),
        Exchange("PUT", f"{_BOOKIE}/gc", "{"),
        Exchange("POST", f"{_BOOKIE}/gc"),
        Exchange("GET", f"{_BOOKIE}/gc_details"),
        Exchange("PUT", f"{_BOOKIE}/gc_details"),
        Exchange("GET", f"{_BOOKIE}/gc/suspend_compaction"),
        Exchange("PUT", f"{_BOOKIE}/gc/suspend_compaction"),
        Exchange("PUT", f"{_BOOKIE}/gc/suspend_compaction", "{}"),
        Exchange("PUT", f"{_BOOKIE}/gc/suspend_compaction", '{"suspendMajor": true, "suspendMinor": true}'),
        Exchange("PUT", f"{_BOOKIE}/gc/suspend_compaction", '{"suspendMajor": "true"}'),
        Exchange("POST", f"{_BOOKIE}/gc/suspend_compaction"),
        Exchange("GET", f"{_BOOKIE}/gc/resume_compaction"),
        Exchange("PUT", f"{_BOOKIE}/gc/resume_compaction"),
        Exchange("PUT", f"{_BOOKIE}/gc/resume_compaction", "{}"),
        Exchange("PUT", f"{_BOOKIE}/gc/resume_compaction", '{"resumeMajor": true, "resumeMinor": true}'),
        Exchange("GET", f"{_BOOKIE}/state"),
        Exchange("PUT", f"{_BOOKIE}/state"),
        Exchange("GET", f"{_BOOKIE}/sanity"),
        Exchange("PUT", f"{_BOOKIE}/sanity"),
        Exchange("GET", f"{_BOOKIE}/is_ready"),
        Exchange("PUT", f"{_BOOKIE}/is_ready"),
        Exchange("GET", f"{_BOOKIE}/info"),
        Exchange("PUT", f"{_BOOKIE}/info"),
        Exchange("GET", f"{_BOOKIE}/cluster_info"),
        Exchange("PUT", f"{_BOOKIE}/cluster_info"),
        Exchange("GET", f"{_BOOKIE}/entry_location_compact"),
        Exchange("PUT", f"{_BOOKIE}/entry_location_compact"),
        Exchange("PUT", f"{_BOOKIE}/entry_location_compact", "{}"),
        Exchange("POST", f"{_BOOKIE}/entry_location_compact"),
        Exchange("GET", f"{_BOOKIE}/state/readonly"),
        Exchange("PUT", f"{_BOOKIE}/state/readonly", '{"readOnly": true}'),
        Exchange("PUT", f"{_BOOKIE}/state/readonly", '{"readOnly": false}'),
        Exchange("PUT", f"{_BOOKIE}/state/readonly", "{"),
        Exchange("PUT", f"{_BOOKIE}/state/readonly"),
        Exchange("DELETE", f"{_BOOKIE}/state/readonly"),
    ),
    "autorecovery": (
        Exchange("GET", f"{_AUTORECOVERY}/status"),
        Exchange("PUT", f"{_AUTORECOVERY}/status"),
        Exchange("PUT", f"{_AUTORECOVERY}/status?enabled=false"),
        Exchange("GET", f"{_AUTORECOVERY}/list_under_replicated_ledger?missingreplica={{bookie}}"),
        Exchange("GET", f"{_AUTORECOVERY}/list_under_replicated_ledger"),
        Exchange("GET", f"{_AUTORECOVERY}/list_under_replicated_ledger?printmissingreplica=true"),
        Exchange("GET", f"{_AUTORECOVERY}/list_under_replicated_ledger?missingreplica={{other}}"),
        Exchange("GET", f"{_AUTORECOVERY}/list_under_replicated_ledger?excludingmissingreplica={{other}}"),
        Exchange("PUT", f"{_AUTORECOVERY}/list_under_replicated_ledger"),
        Exchange("PUT", f"{_AUTORECOVERY}/trigger_audit?while=disabled"),
        Exchange("PUT", f"{_AUTORECOVERY}/status?enabled=true"),
        Exchange("DELETE", f"{_AUTORECOVERY}/status"),
        Exchange("GET", f"{_AUTORECOVERY}/who_is_auditor"),
        Exchange("PUT", f"{_AUTORECOVERY}/who_is_auditor"),
        Exchange("PUT", f"{_AUTORECOVERY}/trigger_audit"),
        Exchange("GET", f"{_AUTORECOVERY}/trigger_audit"),
        Exchange("GET", f"{_AUTORECOVERY}/lost_bookie_recovery_delay"),
        Exchange("PUT", f"{_AUTORECOVERY}/lost_bookie_recovery_delay", '{"delay_seconds": 7}'),
        Exchange("PUT", f"{_AUTORECOVERY}/lost_bookie_recovery_delay", "{}"),
        Exchange("PUT", f"{_AUTORECOVERY}/lost_bookie_recovery_delay"),
        Exchange("PUT", f"{_AUTORECOVERY}/lost_bookie_recovery_delay", '{"delay_seconds": "7"}'),
        Exchange("POST", f"{_AUTORECOVERY}/lost_bookie_recovery_delay"),
        Exchange("PUT", f"{_AUTORECOVERY}/bookie"),
        Exchange("PUT", f"{_AUTORECOVERY}/bookie", "{"),
        Exchange("PUT", f"{_AUTORECOVERY}/bookie", '{"bookie_src": []}'),
        Exchange("PUT", f"{_AUTORECOVERY}/bookie", '{"bookie_src": ["127.0.0.1:1"], "delete_cookie": false}'),
        Exchange("GET", f"{_AUTORECOVERY}/bookie"),
        Exchange("PUT", f"{_AUTORECOVERY}/decommission"),
        Exchange("PUT", f"{_AUTORECOVERY}/decommission", "{}"),
        Exchange("PUT", f"{_AUTORECOVERY}/decommission", '{"bookie_src": "127.0.0.1:1"}'),
        Exchange("GET", f"{_AUTORECOVERY}/decommission"),
    ),
}
"""By what they are about. Their order matters: some change what later ones see."""


def as_shown(reply: Reply, names: Mapping[str, str]) -> dict[str, Any]:
    """A reply as it is kept in a file. ``names``: what stands for ledgers and bookies of this run."""
    kept: dict[str, Any] = {"status": reply.status}
    try:
        kept["json"] = _named(json.loads(reply.body), names)
    except ValueError:
        text = str(_named(reply.body, names))
        kept["text"] = text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."
    return kept


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """A value in which names stand for ledgers and bookies."""
    if isinstance(value, dict):
        return {_named(key, names): _named(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    text = str(value)
    for name, meant in sorted(names.items(), key=lambda each: -len(each[1])):
        text = re.sub(rf"(?<![\w.]){re.escape(meant)}(?![\w.])", f"{{{name}}}", text)
    return value if text == str(value) else text


TEXT_MAX: Final = 400
"""Characters of a text that are kept: a page of metrics is long."""


def shape(kept: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a reply is compared."""
    if "json" in kept:
        return kept["status"], "json", _kinds(kept["json"])
    text = re.sub(r"\d+", "#", kept["text"])
    return kept["status"], "text", text.partition("\n")[0] if kept["status"] < 400 else ""


def _kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", name): _kinds(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_kinds(each) for each in value[:1]]
    return value if value is None else type(value).__name__
