"""A name node that survives its machine: HDFS's namespace on an edit log of this project.

Read in this order::

    namespace     the tree, and what each edit does to it
    inodes        directories, files, links
    retry_cache   which requests were done
    image         a namespace as bytes
    errors        why a request or an edit is refused
"""
