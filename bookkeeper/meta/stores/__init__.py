"""The metadata stores: ZooKeeper, SQLite, memory. Each keeps the contract of :mod:`bookkeeper.meta.store`.

zookeeper, zookeeper_client, write_batcher, access_list, credentials
                      ZooKeeper; writes of one turn go together; who we are to it, and who may change what
sqlite, sqlite_file   a file that the processes of one machine share
memory                inside this process
tree, watches         what the stores share that keep the tree themselves; subscriptions
process_identity      is the process that made a session still there?
"""
