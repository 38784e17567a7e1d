"""``bk checkpoint list``, ``show``, ``diff``, ``fsck``, ``rollback``: look at checkpoints of queries, and go back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.shared.answers import VerbAnswer
from bookkeeper.admin.shared.options import json_option, print_table
from bookkeeper.amounts import counted, size_in_words

if TYPE_CHECKING:
    from spark_wal.checkpoint_copy.contents import FileStamp
    from spark_wal.checkpoints.checkpoint import Checkpoint
    from spark_wal.checkpoints.difference import CheckpointDifference
    from spark_wal.checkpoints.fsck import CheckpointVerdict
    from spark_wal.spark_access import GatewayAccess
from spark_wal.checkpoint_options import access_options, in_ranges, opened_store, required
from spark_wal.rollback_verb import rollback

BATCHES_SHOWN: Final = 10
"""Batches that ``show`` prints for people: the last ones."""


@click.command("list")
@click.argument("location")
@json_option
@access_options
def list_checkpoints(location: str, as_json: bool, access: GatewayAccess) -> None:
    """List the checkpoints at and below LOCATION, by the ids of their queries.

    LOCATION is written as for `bk checkpoint copy`; webhdfs://HOST:PORT/ is everything at a gateway.
    """
    from spark_wal.checkpoints.checkpoint import read_checkpoint
    from spark_wal.checkpoints.reader import checkpoint_paths

    with opened_store(location, access, may_be_root=True) as store:
        listing = store.listing()
        rows = []
        for place in checkpoint_paths(listing):
            above = f"{place}/" if place else ""
            files: dict[str, FileStamp] = {p[len(above) :]: s for p, s in listing.items() if p.startswith(above)}
            metadata = {"metadata": b"".join(store.read(f"{above}metadata"))}
            numbers = {log: _last_number(files, log) for log in ("offsets", "commits")}
            small = {path: data for path, data in files.items() if path == "metadata" or path.startswith("state/")}
            operators = {
                path: b"".join(store.read(above + path))
                for path in small
                if "/_metadata/" in path and not path.endswith(("schema", ".crc"))
            }
            found = read_checkpoint(f"{store.uri}/{place}".rstrip("/"), small, {**metadata, **operators})
            rows.append(_list_row(found, numbers, files))
    VerbAnswer(rows, lambda: _print_list(store.uri, rows)).show(as_json)


def _last_number(files: dict[str, FileStamp], log: str) -> int | None:
    names = [path.removeprefix(f"{log}/") for path in files if path.startswith(f"{log}/")]
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _list_row(found: Checkpoint, numbers: dict[str, int | None], files: dict[str, FileStamp]) -> dict[str, object]:
    from spark_wal.checkpoints.layout import Kind

    newest = max(files.values(), key=lambda stamp: stamp.modified_ms)
    return {
        "location": found.uri,
        "query": found.query_id,
        "last_offsets": numbers["offsets"],
        "last_commit": numbers["commits"],
        "operators": [operator.name for operator in found.operators.values()],
        "state_bytes": found.size(Kind.STATE, Kind.SHARED, Kind.SIDECAR),
        "files": len(files),
        "written_by": newest.owner or None,
        "last_write": _time(newest.modified_ms),
        "being_written": [path for path in files if _is_temporary(path)],
    }


def _is_temporary(path: str) -> bool:
    from spark_wal.checkpoint_copy.contents import is_temporary

    return is_temporary(path)


def _print_list(place: str, rows: list[dict[str, object]]) -> None:
    if not rows:
        click.echo(f"there are no checkpoints below {place}")
        return
    shown = [
        {
            **{name: row[name] for name in ("location", "query", "last_offsets", "last_commit")},
            "state": size_in_words(int(str(row["state_bytes"]))),
            **{name: row[name] for name in ("written_by", "last_write")},
        }
        for row in rows
    ]
    print_table(f"checkpoints below {place}", tuple(shown[0]), shown)


def _time(ms: int) -> str | None:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if ms else None


@click.command()
@click.argument("location")
@json_option
@access_options
def show(location: str, as_json: bool, access: GatewayAccess) -> None:
    """Show one checkpoint: its batches, where each source ends, its operators and the versions of their state."""
    from spark_wal.checkpoints.reader import load

    with opened_store(location, access) as store:
        found = required(load(store))
    document = _document(found)
    VerbAnswer(document, lambda: _print_checkpoint(found, document)).show(as_json)


def _document(found: Checkpoint) -> dict[str, Any]:
    from spark_wal.checkpoints.layout import Kind

    numbers = sorted(found.offsets.keys() | found.commits.keys())
    return {
        "location": found.uri,
        "query": found.query_id,
        "unfinished_copy_of": found.unfinished_copy_of,
        "next_batch": found.next_batch,
        "state_format": 2 if found.has_unique_ids else 1,
        "batches": [_batch(found, number) for number in numbers],
        "operators": [
            {
                "operator": operator.number,
                "name": operator.name,
                "stores": [{"name": name, "partitions": count} for name, count in operator.stores],
            }
            for operator in found.operators.values()
        ],
        "state": [
            {
                "operator": partition.operator,
                "partition": partition.partition,
                "store": partition.store,
                "versions": [{"version": f.version, "unique_id": f.unique_id or None, "file": f.path} for f in files],
                "bytes": sum(found.listing[f.path].size for f in files),
            }
            for partition, files in found.state_files.items()
        ],
        "schemas": sorted(path for path, each in found.meanings.items() if each.kind is Kind.SCHEMA),
        "unreadable": dict(found.unreadable),
        "files": len(found.listing),
        "bytes": found.size(),
    }


def _batch(found: Checkpoint, number: int) -> dict[str, object]:
    planned, commit = found.offsets.get(number), found.commits.get(number)
    return {
        "batch": number,
        "planned": None if planned is None else _time(planned.planned_ms),
        "watermark_ms": None if planned is None else planned.watermark_ms,
        "sources": None if planned is None else dict(planned.sources),
        "committed": commit is not None,
        "state_ids": None if commit is None else {str(k): v for k, v in commit.state_ids.items()} or None,
    }


def _print_checkpoint(found: Checkpoint, document: dict[str, Any]) -> None:
    click.echo(
        f"{found.uri}: query {found.query_id}, {counted(len(found.listing), 'file')}, {size_in_words(found.size())}"
    )
    last = "none" if found.committed is None else str(found.committed)
    again = " (planned, not done)" if found.next_batch in found.offsets else ""
    click.echo(f"last batch done: {last}; next: {found.next_batch}{again}")
    batches = document["batches"][-BATCHES_SHOWN:]
    rows = [
        {
            "batch": batch["batch"],
            "planned": batch["planned"],
            "done": batch["committed"],
            "sources": [f"{name}: {text}" for name, text in (batch["sources"] or {}).items()],
        }
        for batch in batches
    ]
    columns = ("batch", "planned", "done", "sources")
    print_table(f"the last {len(batches)} of {counted(len(document['batches']), 'batch')}", columns, rows)
    operators = [
        {
            "operator": each["operator"],
            "name": each["name"],
            "stores": [f"{store['name']} in {counted(store['partitions'], 'partition')}" for store in each["stores"]],
        }
        for each in document["operators"]
    ]
    if operators:
        print_table("operators with state", ("operator", "name", "stores"), operators)
        print_table(f"state, format {document['state_format']}", _STATE, [_state_row(s) for s in document["state"]])


_STATE: Final = ("operator", "partition", "store", "versions", "whole", "size")


def _state_row(state: dict[str, Any]) -> dict[str, object]:
    versions = sorted({each["version"] for each in state["versions"]})
    whole = sorted({each["version"] for each in state["versions"] if each["file"].endswith((".snapshot", ".zip"))})
    return {
        **{name: state[name] for name in ("operator", "partition", "store")},
        "versions": f"{versions[0]} to {versions[-1]}",
        "whole": [str(version) for version in whole[-3:]],
        "size": size_in_words(state["bytes"]),
    }


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
@access_options
def diff(first: str, second: str, as_json: bool, access: GatewayAccess) -> None:
    """Compare two checkpoints of a query batch by batch: sources, watermark, commits, and the changes of state.

    Two runs of one query over the same input should be the same, wherever their checkpoints are. What is another in
    each run is not compared: times, ids, names and sizes of files. Of state, deltas and changelogs are compared, in any
    order of their rows; snapshots are not. The exit status is 1 if a batch differs.
    """
    from spark_wal.checkpoints.difference import compare
    from spark_wal.checkpoints.reader import load, read_changes

    with opened_store(first, access) as store_a, opened_store(second, access) as store_b:
        a, b = required(load(store_a)), required(load(store_b))
        found = compare(a, b, read_changes(store_a, a), read_changes(store_b, b))
    document = {
        "first": a.uri,
        "second": b.uri,
        "same": not found.batches,
        "compared": list(found.compared),
        "state_not_compared": list(found.without_state),
        "settings": list(found.settings),
        "batches": [{"batch": each.batch, "differences": list(each.what)} for each in found.batches],
    }
    VerbAnswer(document, lambda: _print_difference(found), not found.batches).show(as_json)


def _print_difference(found: CheckpointDifference) -> None:
    for setting in found.settings:
        click.echo(f"another setting: {setting}")
    for each in found.batches:
        click.echo(f"batch {each.batch}: {'; '.join(each.what)}")
    if found.without_state:
        click.echo(
            f"{in_ranges(found.without_state)}: state without deltas or changelogs of one format was not compared"
        )
    if not found.compared:
        click.echo("there are no batches to compare")
    elif found.batches:
        click.echo(
            f"of {counted(len(found.compared), 'batch')} {len(found.batches)} "
            f"{'differs' if len(found.batches) == 1 else 'differ'}"
        )
    else:
        click.echo(f"{in_ranges(found.compared)}: the same")


@click.command()
@click.argument("location")
@json_option
@access_options
def fsck(location: str, as_json: bool, access: GatewayAccess) -> None:
    """Read the logs and the state of a checkpoint, and say what is damaged and what helps.

    It names holes in the logs, files of state that are missing, short or damaged, and files that Spark does not
    write. The exit status is 1 if something is damaged, also if the query can go on without it. It changes nothing;
    stop the query first, or a file that Spark is just removing counts as missing.
    """
    from spark_wal.checkpoints.fsck import check
    from spark_wal.checkpoints.reader import check_state, load

    with opened_store(location, access) as store:
        found = required(load(store))
        verdict = check(found, check_state(store, found))
    document = {
        "location": found.uri,
        "query": found.query_id,
        "whole": verdict.is_whole,
        "can_start": verdict.can_start,
        "next_batch": verdict.next_batch,
        "is_planned": verdict.is_planned,
        "can_go_back_to": list(verdict.back_to),
        "findings": [
            {"file": f.path, "what": f.what, "advice": f.advice, "damage": f.is_damage} for f in verdict.findings
        ],
    }
    VerbAnswer(document, lambda: _print_verdict(found, verdict), verdict.is_whole).show(as_json)


def _print_verdict(found: Checkpoint, verdict: CheckpointVerdict) -> None:
    for finding in verdict.findings:
        click.echo(f"{'damaged' if finding.is_damage else 'note'}: {finding.path}: {finding.what}")
        click.echo(f"    {finding.advice}")
    whole = "whole" if verdict.is_whole else "damaged"
    again = ", planned already, which is repeated with the same rows" if verdict.is_planned else ""
    if verdict.can_start:
        click.echo(f"{found.uri} is {whole}; the query goes on with batch {verdict.next_batch}{again}")
    else:
        click.echo(f"{found.uri} is {whole}; the query cannot go on with batch {verdict.next_batch} as it is")
    if verdict.back_to:
        click.echo(f"it can go back to {in_ranges(verdict.back_to)}")


VERBS: Final = (list_checkpoints, show, diff, fsck, rollback)
