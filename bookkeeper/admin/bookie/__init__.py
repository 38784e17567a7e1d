"""``bk bookie``: one bookie on this machine, which runs, or whose files are looked at and mended.

bookie               the group; ``run``, and the commands to a bookie that runs
bookie_directories   ``directories``, ``add-directory``, ``drain-directory``, ``lose-directory``
bookie_checks        ``check``, ``index rebuild``, ``gc --offline``, ``scrub --offline``
dumps                ``journal dump``, ``log dump``, ``index dump``, ``last-mark``
cookies              ``cookie``
stopped_bookie       the directories of a bookie that does not run: options, locks, what is in the manifest

Nothing is imported here: who starts a bookie does not wait for what looks at its files.
"""
