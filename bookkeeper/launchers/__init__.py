"""Other people's programs as child processes: Java, ZooKeeper.

For tests, the demo, benchmarks and ``bk zookeeper``; nothing else in this package needs them.

zookeeper                         a ZooKeeper of a single node
java                              a Java to run it with
waiting, patience, machine_speed  waiting for what starts: performed; decided; how fast this machine is
"""
