"""The journal: adds become durable in groups.

group_commit       the shell: one group is made durable while the next collects
group_sequence     the machine: the order of groups, their numbers, who may be answered
write_schedule     the machine: when the next group is written, on the loop's thread or the worker's
deferred_start     the machine: when records are written that nobody waits for
pending_group      one group in memory
group_writer       groups into the journal's files, by one worker
spare_files        journal files that are ready to be used next
entry_log_layout   what the journal asks of the way into the entry logs
inline_sync        whether a group is written on the loop's own thread
journal_format     the bytes
torn_tail          what a power cut can have done to the last group, and what not
"""
