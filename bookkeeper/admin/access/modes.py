"""``bk access observe|enforce|off``: what servers do with the access policy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.access import CLUSTER, Mode, Policy, Right
from bookkeeper.admin.access.policy_change import change_policy, read_policy
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import print_table
from bookkeeper.errors import ConfigError

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta import Metadata

_SHOWN: Final = 20
"""Denials that people are shown."""
_WAY_BACK: Final = "whoever may write the metadata takes it back with `bk access off`"


def missing_duties(policy: Policy) -> list[str]:
    """What would stop for lack of a grant, if this policy were enforced."""
    said = []
    given = [grant.rights for grant in policy.grants if grant.on == CLUSTER]
    if not any(Right.REPAIR in rights for rights in given):
        said.append(
            "no grant gives anybody the right to repair on cluster: autorecovery, drains and bookies that complete "
            "themselves would be denied, and lost copies would stay lost"
        )
    if not any(Right.ADMINISTER in rights for rights in given):
        said.append(
            "no grant gives anybody the right to administer on cluster: orders to servers would be denied to all"
        )
    return said


@click.command()
@verb_on_cluster(changes=True)
@click.option("--yes", is_flag=True, help="Enforce even if no grant allows repairs, or administration.")
async def enforce(bk: BookKeeper, yes: bool) -> VerbAnswer:
    """Deny what the access policy does not grant, within 5 s, on every bookie and gateway of ours.

    Tells what would have been denied while the policy was observed. Refuses if no grant gives anybody the right to
    repair, or to administer, on cluster. If you lock yourself out: whoever may write the metadata runs bk access off.
    """
    metadata = bk.metadata_store
    before = await read_policy(metadata)
    denials = await _denials(metadata, before)

    def alter(policy: Policy) -> Policy:
        missing = missing_duties(policy)
        if missing and not yes:
            raise ConfigError(
                f"{'; '.join(missing)}. Nothing was changed: grant it first, for instance `bk access grant role:bookie "
                "repair cluster`, or give --yes"
            )
        return replace(policy, mode=Mode.ENFORCE)

    policy = await change_policy(metadata, "mode enforce", alter)
    silent = await metadata.access_servers.without_report(sorted(await metadata.bookies.registered()))
    document = {
        "mode": policy.mode.value,
        "observed": before.mode is Mode.OBSERVE,
        "would_have_denied": denials,
        "bookies_that_do_not_follow": silent,
        "missing": missing_duties(policy),
    }
    return VerbAnswer(document, lambda: _print_enforced(before, document))


def _print_enforced(before: Policy, document: dict[str, Any]) -> None:
    denials = document["would_have_denied"]
    if denials:
        title = "while it was observed, these were done and would have been denied"
        print_table(title, ["who", "what", "on", "count", "server"], denials, most=_SHOWN)
    elif before.mode is Mode.OBSERVE:
        click.echo("while it was observed, nothing would have been denied, according to the servers that are up")
    elif before.mode is Mode.OFF:
        click.echo("what this denies is not known: the policy was not observed (`bk access observe`, for a while)")
    for each in document["missing"]:
        click.echo(f"note: {each}")
    if document["bookies_that_do_not_follow"]:
        names = ", ".join(document["bookies_that_do_not_follow"])
        click.echo(f"NOT ENFORCED by {names}: Java's, or of an earlier version")
    click.echo(f"the access policy is enforced within 5 s; {_WAY_BACK}")


async def _denials(metadata: Metadata, policy: Policy) -> list[dict[str, Any]]:
    """What servers would have denied under this policy, as far as they have told; the most frequent first."""
    newest = policy.changes[-1].at_ms if policy.changes else 0
    found = []
    for report in await metadata.access_servers.reports():
        if report.mode is not Mode.OBSERVE or report.changed_ms != newest:
            continue
        server = f"{report.kind} {report.name}"
        found += [
            {"who": each.who, "what": each.what, "on": each.on, "count": each.count, "server": server}
            for each in report.denials
        ]
        if report.other_denials:
            found.append({"who": "others", "what": "", "on": "", "count": report.other_denials, "server": server})
    return sorted(found, key=lambda each: -each["count"])


@click.command()
@verb_on_cluster(changes=True)
async def observe(bk: BookKeeper) -> VerbAnswer:
    """Tell and count what the access policy would deny, and do it all the same.

    Servers log it and count it; bk access enforce shows it, and so does bk access list --json for each server.
    """
    await change_policy(bk.metadata_store, "mode observe", lambda policy: replace(policy, mode=Mode.OBSERVE))
    return VerbAnswer(
        {"mode": "observe"}, "what the access policy would deny is told and counted, and done all the same"
    )


@click.command()
@verb_on_cluster(changes=True)
@click.option(
    "--discard", is_flag=True, help="Replace a policy that cannot be read by an empty one; its grants are lost."
)
async def off(bk: BookKeeper, discard: bool) -> VerbAnswer:
    """Ask nobody for rights any more: every admitted client may do everything. The grants are kept.

    This is the way back in for who has locked himself out: it needs nothing but write access to the metadata.
    """
    await change_policy(bk.metadata_store, "mode off", lambda policy: replace(policy, mode=Mode.OFF), discard=discard)
    return VerbAnswer({"mode": "off"}, "nobody is asked for rights any more, within 5 s; the grants are kept")
