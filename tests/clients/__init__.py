"""Every client that people come with, unmodified, against a gateway that is a process of its own.

``test_clients.py`` drives them with 1 B to 16 MB over kept-alive connections; ``make clients`` with up to 64 MB, many
times, while both cores are kept busy, and prints a table.

clients     the Python ones: requests, fsspec, pyarrow over fsspec, HdfsCLI
in_spark    a program of its own: Hadoop's Java client from PySpark's jars, Spark's reader, queries with real state
drive       files written and read back; what came of it
busy        processes that keep the cores busy

pyarrow's own client of HDFS needs ``libhdfs``, a native library that no Python package brings and that PySpark's jars
have not: pyarrow is driven through fsspec, which is what it documents for file systems that it does not know.
"""
