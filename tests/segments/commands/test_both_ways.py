"""A verb says and does the same with the address of a gateway as with the cluster's."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from segments.chain import StreamHead
from segments.retention.chain_steps import change_chain
from tests.segments.commands.both_ways import BothWays, both_ways, without_chance
from tests.segments.commands.test_check import wrong_count
from tests.segments.gateway.clusters import CONFIG

SETTINGS = ("--set", "ensemble=1", "--set", "write_quorum=1", "--set", "ack_quorum=1")

STORIES: dict[str, tuple[str, ...]] = {
    "looking": (
        "list",
        "list --json",
        "list other/",
        "show orders",
        "show orders --json",
        "show others",
        "show a//b",
        "explain orders",
        "explain orders --json",
        "explain others",
        "count orders",
        "count orders --from seq:4 --to 3:0:0",
        "read orders",
        "read orders --json --from seq:4 --count 2",
        "read orders --from cursor:none",
        "tail orders --from 2:0:1 --count 3",
    ),
    "purging": (
        "purge orders",
        "configure orders --set retention.max_records=3",
        "purge orders --dry-run",
        "purge orders --dry-run --json",
        "explain orders",
        "purge orders",
        "purge orders",
        "purge orders --json",
        "show orders",
        "purge others",
    ),
    "purging, and saying which ledgers": (
        "cursor set orders billing --to seq:1",
        "configure orders --set retention.max_records=3 --set retention.cursors=expire",
        "purge orders --json",
        "explain orders",
        "cursor list orders",
        "list --json",
    ),
    "truncating": (
        "truncate orders --before 2:0:1 --dry-run",
        "hold add orders audit --from 1:0:1",
        "truncate orders --before 2:0:1 --yes",
        "truncate orders --before 2:0:1 --yes --up-to-holds --json",
        "hold release orders audit",
        "truncate orders --before 2:0:1 --yes --keep-ledgers",
        "list",
        "list --json",
        "show orders",
        "purge orders --dry-run",
        "truncate orders --before seq:7 --yes --json",
        "truncate orders --before earliest",
        "truncate orders --before 9:0:0 --yes",
        "show orders --json",
        "read orders",
    ),
    "holding": (
        "hold list orders",
        "hold add orders audit --note why",
        "hold add orders range --from seq:4 --to 3:0:1",
        "hold list orders",
        "hold list orders --json",
        "show orders",
        "purge orders --dry-run",
        "hold release orders range",
        "hold release orders range",
        "hold add orders none --from 2:0:0 --to 1:0:0",
        "hold list others",
        "delete orders --yes",
    ),
    "cursors": (
        "cursor list orders",
        "cursor show orders billing",
        "cursor set orders billing --to seq:4",
        "cursor set orders billing --to seq:7 --dry-run",
        "cursor list orders",
        "cursor list orders --json",
        "cursor set orders billing --to 2:0:0",
        "cursor show orders billing",
        "cursor show orders billing --json",
        "cursor history orders billing",
        "cursor history orders billing --json",
        "cursor restore orders billing 1",
        "cursor restore orders billing 99",
        "cursor restore orders none 1",
        "read orders --from cursor:billing",
        "cursor set orders billing --to 99:0:0",
        "show orders",
        "explain orders",
        "cursor delete orders billing --dry-run",
        "cursor delete orders billing --yes",
        "cursor delete orders billing --yes",
        "cursor history orders billing",
        "cursor list others",
    ),
    "checking": (
        "check orders",
        "check --json",
        "SPOIL",
        "check",
        "check orders --json",
        "check orders --no-scan",
        "check --repair --yes",
        "check --no-orphans",
        "check others",
        "show orders",
    ),
    "copying": (
        "export orders FILE",
        "export orders FILE --json",
        "import FILE --dry-run",
        "import FILE --dry-run --json",
        "import FILE",
        "import FILE --name copy --set retention.max_records=100",
        "import FILE --name copy",
        "import FILE --name again --json",
        "import FILE --name bad --set retention.max_record=100",
        "import FILE --name a//b",
        "show copy --json",
        "read copy",
        "export orders PART --from seq:4 --to 3:0:0 --json",
        "import PART --name part --json",
        "explain part",
        "check",
        "export others FILE",
        "export orders PART --from 9:0:0",
        "export orders PART --from latest",
        "DAMAGE",
        "import FILE --name damaged",
        "CUT",
        "import FILE --name damaged",
        "import PYTHON --name damaged",
        "list",
        "check",
        "hold list orders",
    ),
    "changing": (
        "create orders",
        "create orders --exist-ok",
        "create x/y --set compression=brotli",
        "create .hidden",
        "configure orders --set compression=zstd",
        "configure orders --set roll.max_ages=3",
        "configure orders --set unknown=1",
        "create x/y --set unknown=1",
        "rename orders sales",
        "rename orders again",
        "show sales --json",
        "delete sales --dry-run",
        "delete sales --yes",
        "delete sales --yes",
        "list",
    ),
    "appending": (
        "roll orders --yes",
        "append orders < one two three",
        "append orders --json < four",
        "append orders --producer loader --seq 0 < five six",
        "append orders --producer loader --seq 0 < five six",
        "append others < one",
        "count orders",
        "read orders --from seq:9",
        "seal orders --yes",
        "seal orders --yes --json",
        "append orders < seven",
        "roll others --yes",
    ),
}


PLACE = re.compile(r"\b\d+:\d+:\d+|\"segment.*bytes\": \d+")


async def filled(ways: BothWays) -> None:
    """The stream ``orders``: three completed segments with three records each."""
    assert ways.gateway._namespace is not None
    config = CONFIG.patched({"roll.min_age_s": 0, "roll.max_age_s": 0})
    stream = await ways.gateway._namespace.create("orders", config=config)
    async with stream.writer() as writer:
        for number in range(3):
            await writer.append_batch([b"record %d" % (3 * number + n) for n in range(3)])
            if number < 2:
                await writer.roll()


def damage(file: Path) -> None:
    """Change a bit."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(file: Path) -> None:
    """Cut a file in its middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1  # as it was
    file.write_bytes(data[:-20])


async def spoil(ways: BothWays) -> None:
    """Let the stream's node say something wrong."""
    assert ways.gateway._namespace is not None
    stream = await ways.gateway._namespace.open("orders")
    await change_chain(StreamHead(ways.gateway._namespace.client.metadata_store, stream.id, "orders"), wrong_count)


SPOILS = {"DAMAGE": damage, "CUT": cut}


@pytest.mark.parametrize("story", STORIES)
async def test_a_verb_says_and_does_the_same_through_a_gateway(
    story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        both_ways(tmp_path / "direct", monkeypatch) as direct,
        both_ways(tmp_path / "gateway", monkeypatch) as gateway,
    ):
        ways = {"direct": direct, "gateway": gateway}
        for each in ways.values():
            await filled(each)
        for line in STORIES[story]:
            words, _, data = line.partition(" < ")
            lines = "".join(f"{word}\n" for word in data.split()).encode()
            said = {}
            for way, commands in ways.items():
                files = {"FILE": tmp_path / way / "file", "PART": tmp_path / way / "part", "PYTHON": Path(__file__)}
                if line == "SPOIL":
                    await spoil(commands)
                    continue
                if line in SPOILS:
                    await asyncio.to_thread(SPOILS[line], files["FILE"])
                    continue
                arguments = [str(files.get(word, word)) for word in words.split()]
                status, text = await commands.run(way, *arguments, data=lines)
                if story == "appending":  # a gateway goes on in its segment, and each command begins one
                    text = PLACE.sub("PLACE", text)
                said[way] = status, without_chance(text)
                assert "Traceback" not in text
            assert said.get("gateway") == said.get("direct"), line
