"""The volumes of a bookie: their list, and which of them serve.

volume_list        every volume there ever was, and what has become of it; its file
volume_list_file   the list as it is now, and the file that follows it
serving            those that serve, and their space
"""
