"""Other people's programs as child processes: Java, ZooKeeper, the Python that Spark starts.

For tests, the demo, benchmarks and ``bk zookeeper``; nothing else in this package needs them.
"""
