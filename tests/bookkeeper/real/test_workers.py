"""Threads: order, and results on the loop."""

from __future__ import annotations

import threading

import pytest

from bookkeeper.real.workers import ThreadWorker


@pytest.mark.rule("P2")
async def test_jobs_run_in_order_elsewhere_and_report_on_the_loop() -> None:
    worker = ThreadWorker("w")
    reports: list[tuple[object, object]] = []
    loop_thread = threading.get_ident()
    for i in range(100):
        worker.submit(
            lambda i=i: (i, threading.get_ident()),  # type: ignore[misc]
            lambda result, error: reports.append((result, threading.get_ident())),
        )
    assert not reports, "a result came inside submit"
    assert await worker.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)
    assert [result[0] for result, _ in reports] == list(range(100))  # type: ignore[index]
    assert {thread for _, thread in reports} == {loop_thread}
    assert loop_thread not in {result[1] for result, _ in reports}  # type: ignore[index]
    worker.close()
    worker.close()
    with pytest.raises(RuntimeError):
        worker.submit(lambda: 1, lambda result, error: None)
