"""``bk checkpoint list``, ``show``, ``diff``, ``fsck``, ``rollback``: look at checkpoints of queries, and go back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.shared import VerbAnswer, counted, json_option, print_table, size_in_words
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.option_types import Number, WholeNumber
from bookkeeper.real import read_secret

if TYPE_CHECKING:
    from spark_wal.checkpoint_copy.contents import FileStamp
    from spark_wal.checkpoint_copy.stores import CheckpointStore
    from spark_wal.checkpoints.checkpoint import Checkpoint
    from spark_wal.checkpoints.difference import CheckpointDifference
    from spark_wal.checkpoints.fsck import CheckpointVerdict
    from spark_wal.checkpoints.rollback import RollbackPlan
    from spark_wal.spark_access import GatewayAccess

FILE: Final = click.Path(dir_okay=False)
QUIET_S: Final = 60.0
"""Seconds without a write after which a rollback takes a query for stopped."""
BATCHES_SHOWN: Final = 10
"""Batches that ``show`` prints for people: the last ones."""


def access_options(verb: Callable[..., None]) -> Callable[..., None]:
    """``--ca``, ``--cert``, ``--key``, ``--token-file``: the verb gets ``access``, and its failures are sentences."""
    options = (
        click.option(
            "--ca",
            type=FILE,
            help="PEM: the authority that signed the gateway's certificate (swebhdfs).  "
            "[default: the public authorities]",
        ),
        click.option("--cert", type=FILE, help="PEM: the client's certificate, for a gateway that asks for one."),
        click.option("--key", type=FILE, help="PEM: the client's private key.  [default: it is in --cert]"),
        click.option("--token-file", type=FILE, help="A private file that holds the token for a gateway."),
    )

    @wraps(verb)
    def command(*, ca: str | None, cert: str | None, key: str | None, token_file: str | None, **others: Any) -> None:
        from spark_wal.checkpoint_copy.copier import CopyRefusedError
        from spark_wal.checkpoint_copy.stores import CheckpointStoreError
        from spark_wal.spark_access import GatewayAccess

        try:
            token = None if token_file is None else read_secret(token_file)
            verb(access=GatewayAccess(ca=ca, certificate=cert, key=key, token=token), **others)
        except (ConfigError, CopyRefusedError, CheckpointStoreError, OSError) as error:
            raise click.ClickException(in_words(error)) from error

    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def _opened(location: str, access: GatewayAccess, *, may_be_root: bool = False) -> Iterator[CheckpointStore]:
    from spark_wal.checkpoint_copy.open_store import open_store

    with closing(open_store(location, access, may_be_root=may_be_root)) as store:
        yield store


def _required(checkpoint: Checkpoint) -> Checkpoint:
    if not checkpoint.offsets and not checkpoint.commits and checkpoint.query_id is None:
        raise click.ClickException(
            f"{checkpoint.uri} holds no checkpoint: a query's checkpoint has a file named metadata and a directory "
            "named offsets"
        )
    return checkpoint


# -- list --------------------------------------------------------------------------------------------------


@click.command("list")
@click.argument("location")
@json_option
@access_options
def list_checkpoints(location: str, as_json: bool, access: GatewayAccess) -> None:
    """List the checkpoints at and below LOCATION, by the ids of their queries.

    LOCATION is written as for `bk checkpoint copy`; webhdfs://HOST:PORT/ is everything at a gateway.
    """
    from spark_wal.checkpoints.checkpoint import read_checkpoint
    from spark_wal.checkpoints.reader import places_of_checkpoints

    with _opened(location, access, may_be_root=True) as store:
        listing = store.listing()
        rows = []
        for place in places_of_checkpoints(listing):
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


# -- show --------------------------------------------------------------------------------------------------


@click.command()
@click.argument("location")
@json_option
@access_options
def show(location: str, as_json: bool, access: GatewayAccess) -> None:
    """Show one checkpoint: its batches, where each source ends, its operators and the versions of their state."""
    from spark_wal.checkpoints.reader import load

    with _opened(location, access) as store:
        found = _required(load(store))
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
    click.echo(f"{found.uri}: query {found.query_id}, {len(found.listing)} files, {size_in_words(found.size())}")
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
    print_table(f"the last {len(batches)} of {len(document['batches'])} batches", columns, rows)
    operators = [
        {
            "operator": each["operator"],
            "name": each["name"],
            "stores": [f"{store['name']} in {store['partitions']} partitions" for store in each["stores"]],
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


# -- diff --------------------------------------------------------------------------------------------------


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

    with _opened(first, access) as store_a, _opened(second, access) as store_b:
        a, b = _required(load(store_a)), _required(load(store_b))
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
        click.echo(f"{_ranges(found.without_state)}: state without deltas or changelogs of one format was not compared")
    if not found.compared:
        click.echo("there are no batches to compare")
    elif found.batches:
        click.echo(f"{len(found.batches)} of {len(found.compared)} batches differ")
    else:
        click.echo(f"{_ranges(found.compared)}: the same")


# -- fsck --------------------------------------------------------------------------------------------------


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

    with _opened(location, access) as store:
        found = _required(load(store))
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
        click.echo(f"it can go back to {_ranges(verdict.back_to)}")


def _ranges(numbers: tuple[int, ...]) -> str:
    """``batch 3``, or ``batches 1 to 4, 6``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in found]
    return ("batch " if len(numbers) == 1 else "batches ") + ", ".join(parts)


# -- rollback ----------------------------------------------------------------------------------------------


@click.command()
@click.argument("location")
@click.argument("batch", type=WholeNumber(min=0))
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="LOCATION",
    help="The directory of a file sink of the query: its later batches are listed. May be repeated.",
)
@click.option(
    "--metadata",
    "-m",
    metavar="URI",
    help="A cluster, or a gateway of streams: its streams that have later batches of the query are listed.",
)
@click.option(
    "--quiet-s",
    type=Number(min=0),
    default=QUIET_S,
    show_default=True,
    metavar="SECONDS",
    help="Refuse if something was written within this time.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@access_options
def rollback(
    location: str,
    batch: int,
    sinks: tuple[str, ...],
    metadata: str | None,
    quiet_s: float,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    access: GatewayAccess,
) -> None:
    """Go back to BATCH: it becomes the last one that is done, and the query goes on behind it.

    LOCATION is at a gateway, where all files behind the batch go by one edit: after a crash it was done or it was not.
    It is refused while somebody writes there. A query that rests between two batches cannot be seen: stop it first.
    Rows behind the batch are read again from the sources, which must still have them, and may be cut into batches
    otherwise. What went does not come back: to keep it, `bk checkpoint copy` the checkpoint before.

    A checkpoint does not name its sinks. A sink that has later batches takes them for repetitions and ignores them,
    as format("bookkeeper") and file sinks do, or has their rows twice.
    """
    from spark_wal.checkpoint_copy.gateway_store import GatewayStore
    from spark_wal.checkpoints.fsck import StateChecks
    from spark_wal.checkpoints.reader import check_state, load
    from spark_wal.checkpoints.rollback import RollbackRefusedError, plan_rollback

    with _opened(location, access) as store:
        if not isinstance(store, GatewayStore):
            raise click.ClickException(
                f"{store.uri} is not at a gateway, and only there all files go in one step: `bk checkpoint copy` it to "
                "a gateway, go back there, and start the query there (or copy it to a new directory)"
            )
        found = _required(load(store))
        try:
            plan = plan_rollback(found, StateChecks.of(found, check_state(store, found)), batch)
        except RollbackRefusedError as error:
            raise click.ClickException(str(error)) from error
        later = [*_file_sinks(sinks, batch, access), *_streams_with(metadata, found.query_id or "", batch)]
        document = {
            "location": found.uri,
            "query": found.query_id,
            "batch": batch,
            "removed": list(plan.removed),
            "repeated": list(plan.repeated),
            "goes_on_with": list(plan.needed),
            "sinks_with_later_batches": later,
            "done": not dry_run,
        }
        if not as_json:
            _print_plan(found, plan, later, bool(sinks or metadata))
        if not dry_run:
            if not yes:
                click.confirm("go back?", abort=True, err=as_json)
            store.remove_numbered(plan.limits, found.listing, quiet_s)
    again = f"{found.uri}: batch {batch} is the last one that is done; the query goes on with batch {batch + 1}"
    VerbAnswer(document, "nothing was done" if dry_run else again).show(as_json)


def _print_plan(found: Checkpoint, plan: RollbackPlan, later: list[dict[str, object]], asked: bool) -> None:
    click.echo(f"{found.uri}, query {found.query_id}: back to batch {plan.batch}")
    repeated = f"{_ranges(plan.repeated)} will be computed again" if plan.repeated else "no batch that was done is lost"
    click.echo(f"{counted(len(plan.removed), 'file')} behind it will go; {repeated}")
    for sink in later:
        click.echo(f"{sink['sink']} has batch {sink['last']} of this query: what comes again up to there is ignored")
    if not later and plan.repeated:
        none = "none of the sinks that were asked has later batches"
        click.echo(f"{none if asked else 'no sink was asked (--sink, --metadata)'}; look at the others yourself")


def _file_sinks(sinks: tuple[str, ...], batch: int, access: GatewayAccess) -> list[dict[str, object]]:
    """The file sinks whose log has later batches."""
    from spark_wal.checkpoints.sinks import last_batch_of_file_sink

    found: list[dict[str, object]] = []
    for sink in sinks:
        with _opened(sink, access) as store:
            last = last_batch_of_file_sink(store.listing())
            if last is None:
                raise click.ClickException(f"{store.uri} is no output of a file sink: it has no _spark_metadata")
            if last > batch:
                found.append({"sink": store.uri, "last": last})
    return found


def _streams_with(metadata: str | None, query: str, batch: int) -> list[dict[str, object]]:
    """The streams that remember later batches of the query."""
    if metadata is None:
        return []
    from segments import StreamError, sync
    from spark_wal.checkpoints.sinks import later_batches

    try:
        with sync.connect(metadata) as namespace:
            return [
                {"sink": f"stream {name} (application {app})", "last": last}
                for name in namespace.list()
                for app, last in later_batches(namespace.open(name).apps(), query, batch)
            ]
    except StreamError as error:
        raise click.ClickException(in_words(error)) from error


VERBS: Final = (list_checkpoints, show, diff, fsck, rollback)
