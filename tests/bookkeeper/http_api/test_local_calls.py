"""What is asked of the bookie in this process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bookkeeper.http_api.served import Served, story
from tests.bookkeeper.http_api.waiting import until

AT = "/api/v1/bookie"


def _rests(served: Served) -> bool:
    return served.server.engine.compactor.is_suspended


def _ordered_by(served: Served) -> str | None:
    return served.server.parts.order.by


def test_compaction_rests_and_goes_on_and_a_pass_is_begun(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        suspended = {"isMajorGcSuspended": "true", "isMinorGcSuspended": "true"}
        assert (await served.ask("PUT", f"{AT}/gc/suspend_compaction", '{"suspendMajor": false}')).status == 200
        assert not _rests(served)
        assert (await served.ask("PUT", f"{AT}/gc/suspend_compaction", '{"suspendMinor": true}')).status == 200
        assert _rests(served)
        assert json.loads((await served.ask("GET", f"{AT}/gc/suspend_compaction")).body) == suspended
        assert (await served.ask("PUT", f"{AT}/gc/suspend_compaction", '{"suspendMinor": false}')).status == 200
        assert (await served.ask("PUT", f"{AT}/gc/resume_compaction", '{"resumeMajor": false}')).status == 200
        assert _rests(served), "a word that is false asks for nothing"
        assert (await served.ask("PUT", f"{AT}/gc/resume_compaction", '{"resumeMajor": true}')).status == 200
        assert not _rests(served)
        age = served.server.parts.garbage.age_s
        assert (await served.ask("PUT", f"{AT}/gc", '{"forceMajor": "false"}')).status == 200

        async def passed() -> bool:
            now = served.server.parts.garbage.age_s
            return now is not None and (age is None or now < age) and not served.api._api._background.running

        await until(passed)
        assert (await served.ask("PUT", f"{AT}/gc", '{"forceMajor": 1}')).status == 400

    story(tmp_path, work, auditor=False)


def test_an_order_to_be_read_only_is_followed_before_the_reply_and_outlives_the_bookie(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        reply = await served.ask("PUT", f"{AT}/state/readonly", '{"readOnly": true}')
        assert reply.body == '{"readOnly": true}\n' and served.server.condition().read_only
        assert _ordered_by(served) == "operator over HTTP"
        reply = await served.ask("PUT", f"{AT}/state/readonly", '{"readOnly": false}')
        assert reply.body == '{"readOnly": false}\n' and _ordered_by(served) is None
        for body in ("{}", '{"readOnly": "true"}', '{"readOnly": 1}'):
            assert (await served.ask("PUT", f"{AT}/state/readonly", body)).status == 500, "nothing is taken for false"

    story(tmp_path, work, auditor=False)


def test_a_bookie_that_is_read_only_by_its_settings_stays_so(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        reply = await served.ask("PUT", f"{AT}/state/readonly", '{"readOnly": false}')
        assert reply.status == 400 and "forceReadOnly" in reply.body

    story(tmp_path, work, auditor=False, read_only=True)


def test_files_of_every_directory_are_listed_by_their_kinds(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        found = json.loads((await served.ask("GET", f"{AT}/list_disk_file")).body)
        assert set(found) == {"journal files", "entrylog files", "index files"}
        journals = {each.name for each in (tmp_path / "b1/journal").glob("*.journal")}
        assert set(found["journal files"].split("\t")) - {""} == journals != set()
        logs = {each.name for each in (tmp_path / "b1/ledgers").glob("*.log")}
        assert set(found["entrylog files"].split("\t")) - {""} == logs != set()
        (mark,) = json.loads((await served.ask("GET", f"{AT}/last_log_mark")).body)
        assert any(name in mark for name in journals)

    story(tmp_path, work, auditor=False)
