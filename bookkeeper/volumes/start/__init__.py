"""What a start does with volumes, from the list of directories to one interface for all of them.

volume_directories   which directories there are, which may be empty, and which disk does not work
placement_recall     which volume has which ledger, by the file and by what the volumes say
"""
