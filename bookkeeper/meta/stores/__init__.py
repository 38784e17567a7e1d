"""The metadata stores: ZooKeeper, SQLite, memory. Each keeps the contract of :mod:`bookkeeper.meta.store`.

zookeeper, zookeeper_client
                      the store in ZooKeeper, and its client library
write_batcher         sends the writes of one turn together
credentials, access_list
                      this process's identity in ZooKeeper; who may read and change which node
sqlite, sqlite_file   the store in a file that the processes of one machine share
memory                the store inside this process
tree, watches         the meaning of reads and writes, for SQLite and memory; subscriptions
process_identity      whether the process that made a session still runs
"""
