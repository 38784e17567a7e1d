"""The modes of Structured Streaming with their checkpoint on the gateway, compared with ``file://``.

    python -m tests.spark_table [--part 1/4] [--only WORDS] [--home DIR] [--lakes PYTHON]... [--write]

Each mode is a query of unmodified PySpark that runs at two places: its checkpoint (and its table, sink or source, if
that is a directory) in a local directory, and behind a gateway on ledgers. It has three lives, in three processes:

1. the driver is killed (SIGKILL) while the third file of the input is being read: its batch is planned and not done.
2. the driver goes on to the end of the input. Then the last commit is removed, as if the driver had died before it.
3. the driver repeats that batch, and looks at what is there.

One process has many modes, so that one kill is the crash of all of them. Then the places are compared: what the sink
was given batch by batch, what else the mode can see, and what the checkpoint says batch by batch (offsets, commits,
logs of sources and sinks, files of state). With the --home of an earlier run only the modes are run that it lacks.

Delta and Iceberg are published for older Sparks than the one that is installed: --lakes names the Python of an
environment that has one of them, with pandas and pyarrow. Spark fetches their jars from Maven Central.
"""
