"""The journal: adds become durable in groups.

journal_format   the bytes
group_commit     one group is made durable while the next collects
group_writer     groups to the file, by one worker
inline_sync      whether a group is written on the loop's own thread
torn_tail        what a power cut can have done to the last group, and what not
"""
