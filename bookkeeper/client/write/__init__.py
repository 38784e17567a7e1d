"""Writing a ledger: what applications hold, and the shell around ``ledger.write``.

write_handle, advanced_handle   appending, with entry ids chosen here or by the application
append_futures, packets         the futures of pending entries; frames that may have to be sent again
writer_shell                    performs the machine's effects and reports events to it
add_channel                     the adds of one writer to one bookie
metadata_writes                 finds stand-ins, and records changes and the close by compare-and-set
missing_copies                  the copies that re-replication has to make after this writer
incarnation_watch               waits until a failed bookie answers again
retry_pauses                    decides when to try a failed bookie again
lac_turns, lac_sender           when to send a last add confirmed alone, and how
change_log                      logs which failed bookies were replaced, and which were not
repair_marks                    enters the ledger into the list of under-replicated ones
pending_forces                  the callers of each force
recovery_adds                   writes back what a recovery has read
"""
