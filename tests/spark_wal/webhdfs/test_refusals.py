from __future__ import annotations

import pytest

from spark_wal.webhdfs import refusals
from spark_wal.webhdfs.refusals import Refusal

ALL = [value for value in vars(refusals).values() if isinstance(value, type) and issubclass(value, Refusal)]


@pytest.mark.parametrize("kind", ALL)
def test_each_has_a_java_class_and_a_status(kind: type[Refusal]) -> None:
    assert kind.java_class.count(".") >= 2
    assert kind.status in (400, 403, 404, 500)
    assert kind("x").name.endswith("Exception")


def test_standby_is_what_hadoop_fails_over_on() -> None:
    assert refusals.StandbyError.java_class == "org.apache.hadoop.ipc.StandbyException"
    assert refusals.StandbyError.status == 403
