"""A cluster that heals itself: bookies are lost, emptied, filled up, retired and damaged while writers run.

``make demo-heal`` runs it. Read in this order::

    story       what is done to the cluster, and what is waited for
    writers     writers that remember what was acknowledged
    damage      bits that are flipped on a disk
    watch       looks at the cluster, for the picture
    view        the picture
    verdict     whether every ledger is whole and every acknowledged entry reads back
"""
