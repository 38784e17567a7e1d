"""Sockets, and nothing but.

Read in this order
    connection  a client's connection to one bookie: requests, streams of adds, replies matched
    protocol    frames, for both sides;  retry  when to try again
    secure, tls what a connection says before it is used; how connections are encrypted: settings
    in_process  both sides in one process

Nothing is imported here: a bookie needs the frames and not the client's connection, a configuration only ``tls``.
"""
