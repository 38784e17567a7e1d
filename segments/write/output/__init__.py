"""From groups of appends to entries of the stream.

append_queue      sends groups, lets those who wait for room go on
entry_output      segment after segment
changed_settings  settings that changed meanwhile: the next segment has them
entry_sender      groups to entries, and to those who wait for them
flight            an entry, and whom it answers
writer_metrics    what is counted
"""
