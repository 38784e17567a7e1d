"""``bk access usage``: how much tenants and owners have, what their quotas are, and what still counts until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.access import Amount, Policy, Quota, Resource, ResourceKind, Usage
from bookkeeper.access.usage import NOTHING
from bookkeeper.admin.access.matches import names_of
from bookkeeper.admin.access.policy_change import read_policy
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import moment, print_table
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.real import system_seams

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta import Metadata

_COLUMNS: Final = ["who", "bytes_kept", "bytes_quota", "ledgers", "ledgers_quota"]
_STREAMS: Final = ["streams", "streams_quota"]
"""Columns of tenants alone."""


@click.command()
@verb_on_cluster()
@click.option("--count", is_flag=True, help="Count now, for all servers; otherwise autorecovery does it every minute.")
async def usage(bk: BookKeeper, count: bool) -> VerbAnswer:
    """Show what tenants and owners of ledgers have, their quotas, and what still counts and until when.

    A ledger counts with the bytes of all its copies. What is deleted counts until it cannot be brought back any more
    (bk ledger list --deleted), and is gone with the next count.
    """
    from bookkeeper.replication.inspection.usage import UsageCounter

    metadata = bk.metadata_store
    policy = await read_policy(metadata)
    counter = UsageCounter(bk)
    notes: list[str] = []
    if count:
        found = await counter.count(policy, system_seams().clock.wall_ms())
        await metadata.access.write_usage(found.usage)
        used, deleted = found.usage, found.deleted
        if found.unreadable:
            notes.append(f"not counted: {counted(found.unreadable, 'ledger')}, whose metadata cannot be read")
        if found.open_unknown:
            notes.append(f"counted as before: {counted(found.open_unknown, 'open ledger')}, of which no bookie answers")
    else:
        used, deleted = await metadata.access.read_usage() or Usage(), await counter.deleted(policy)
        if not used.counted_ms:
            notes.append(
                "nothing was counted yet: autorecovery counts while bytes or ledgers have quotas, and so does --count"
            )
    document = {
        "counted_ms": used.counted_ms or None,
        "tenants": await _tenants(metadata, policy, used),
        "owners": _rows(used.owners, _quotas(policy, used)),
        "still_counting": [
            {
                "owner": str(each.owner) if each.owner.name else None,
                "tenant": each.tenant,
                "ledgers": each.ledgers,
                "bytes_kept": each.bytes_kept,
                "until_ms": each.until_ms,
                "why": "deleted, and can be brought back",
            }
            for each in deleted
        ],
        "notes": notes,
    }
    return VerbAnswer(document, lambda: _print(document))


async def _tenants(metadata: Metadata, policy: Policy, used: Usage) -> list[dict[str, Any]]:
    """Streams are counted now: gateways count them whenever one is to be made."""
    names = await names_of(metadata, ResourceKind.STREAMS) or []
    streams = [Resource(ResourceKind.STREAMS, name) for name in names]
    rows = _rows(used.tenants, {each.name: each.quota for each in policy.tenants})
    for row in rows:
        tenant = policy.tenant(row["who"])
        row["streams"] = 0 if tenant is None else sum(map(tenant.is_owner_of, streams))
        row["streams_quota"] = None if tenant is None else tenant.quota.streams
    return rows


def _quotas(policy: Policy, used: Usage) -> dict[str, Quota]:
    """The quotas of principals that own ledgers, by name, however it is shown."""
    from bookkeeper.access import Principal, PrincipalKind

    return {name: policy.quota_of(Principal(PrincipalKind.CERTIFICATE, name)) for name in used.owners}


def _rows(amounts: Mapping[str, Amount], quotas: Mapping[str, Quota]) -> list[dict[str, Any]]:
    rows = []
    for who in sorted({*amounts, *quotas}):
        amount, quota = amounts.get(who, NOTHING), quotas.get(who, Quota())
        rows.append(
            {
                "who": who,
                "bytes_kept": amount.bytes_kept,
                "bytes_quota": quota.bytes_kept,
                "ledgers": amount.ledgers,
                "ledgers_quota": quota.ledgers,
            }
        )
    return rows


def _print(document: dict[str, Any]) -> None:
    if document["counted_ms"]:
        click.echo(f"counted {moment(document['counted_ms'])}")
    for kind, noun in (("tenants", "tenant"), ("owners", "owner")):
        rows = [
            {**row, **{name: size_in_words(row[name]) for name in ("bytes_kept", "bytes_quota")}}
            for row in document[kind]
        ]
        print_table(counted(len(rows), noun), [*_COLUMNS, *(_STREAMS if kind == "tenants" else ())], rows)
    still = [
        {
            **row,
            "owner": row["owner"] or "nobody",
            "bytes_kept": size_in_words(row["bytes_kept"]),
            "until": moment(row["until_ms"]),
        }
        for row in document["still_counting"]
    ]
    if still:
        print_table("still counting", ["owner", "tenant", "ledgers", "bytes_kept", "until", "why"], still)
    for note in document["notes"]:
        click.echo(f"note: {note}")
