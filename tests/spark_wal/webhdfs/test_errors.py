from __future__ import annotations

import pytest

from spark_wal.webhdfs import errors
from spark_wal.webhdfs.errors import WebHdfsError

ALL = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, WebHdfsError)]


@pytest.mark.parametrize("kind", ALL)
def test_each_has_a_java_class_and_a_status(kind: type[WebHdfsError]) -> None:
    assert kind.java_class.count(".") >= 2
    assert kind.status in (400, 403, 404, 429, 500)
    error = kind("x", after_s=3) if issubclass(kind, errors.RateExceededError) else kind("x")
    assert error.name.endswith("Exception")


def test_standby_is_what_hadoop_fails_over_on() -> None:
    assert errors.StandbyError.java_class == "org.apache.hadoop.ipc.StandbyException"
    assert errors.StandbyError.status == 403
