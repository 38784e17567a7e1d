"""A name node that survives its machine: HDFS's namespace on an edit log of this project.

``make demo-namenode`` runs it. Read in this order::

    namespace     the tree, and what each edit does to it; inodes, retry_cache: what it is made of
    decisions     what a client may ask for, and which edits do it
    image         a namespace as bytes
    name_node     one replica: standing by, or active
    errors        why a request or an edit is refused
    protocol      what clients and replicas say to each other
    replica       a replica as a process
    client        asks until it is answered, under one id
    workload      clients that remember what they were told
    audit         whether anything was lost, or applied twice
    story         what is done to the name node
    view          the picture
"""
