"""The metadata stores: ZooKeeper, SQLite, memory. Each keeps the contract of :mod:`bookkeeper.meta.store`.

zookeeper             the store in ZooKeeper: its operations
zookeeper_session, zookeeper_watches, zookeeper_client
                      its session, its watches, and the client library
write_batcher         sends the writes of one turn together
credentials, access_list
                      this process's identity in ZooKeeper; who may read and change which node
sqlite, sqlite_file   the store in a file that the processes of one machine share
memory                the store inside this process
late                  a session that begins when something is asked
tree, tree_store      the meaning of reads and writes, and the calls, for SQLite and memory
watches               subscriptions
followers, zookeeper_follower
                      readers that know which of their values were written since
process_identity      whether the process that made a session still runs
"""
