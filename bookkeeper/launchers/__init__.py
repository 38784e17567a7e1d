"""Other people's programs as child processes: Java, ZooKeeper, the Python that Spark starts.

For tests, the demo, benchmarks and ``bk zookeeper``; nothing else in this package needs them.

zookeeper                         a ZooKeeper of a single node
java, worker_python               a Java to run it with; a Python that begins quickly, for Spark's workers
waiting, patience, machine_speed  waiting for what starts: performed; decided; how fast this machine is
"""
