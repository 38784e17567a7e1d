"""Spark applications that log their events, one after the other: ``python event_log_job.py '{"logs": "webhdfs://…"}'``.

Each runs a job, tells its id as a line of JSON, and ends, or stays until the process is killed.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field


@dataclass
class Job:
    """What the process is told."""

    logs: str
    """The directory of event logs."""
    apps: list[str] = field(default_factory=list)
    """``single`` or ``rolling``: how each application logs. A ``+ stays`` after it: it does not end."""
    conf: dict[str, str] = field(default_factory=dict)


def main(job: Job) -> None:
    from pyspark import SparkConf, SparkContext

    for app in job.apps:
        conf = SparkConf().setMaster("local[1]").setAppName(app).set("spark.ui.enabled", "false")
        conf.set("spark.driver.host", "127.0.0.1").set("spark.eventLog.enabled", "true")
        conf.set("spark.eventLog.dir", job.logs)
        conf.set("spark.eventLog.rolling.enabled", str(app.startswith("rolling")).lower())
        for name, value in job.conf.items():
            conf.set(name, value)
        context = SparkContext(conf=conf)
        context.parallelize(range(4), 2).count()
        sys.stdout.write(json.dumps({"id": context.applicationId}) + "\n")
        sys.stdout.flush()
        if app.endswith("stays"):
            time.sleep(600)
        context.stop()


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
