"""A year of flights as a topic: owners and gateways are killed, and every record is there exactly once.

``make demo-stream`` runs it. Read in this order::

    story             what is done, and what is waited for
    flights           the records
    owner             a program that appends with the library; it owns its stream
    gateway_writers   producers that append through two gateways
    readers           readers that tail, by a cursor, and by time; and what they check
    view              the picture
    verdict           whether every record was there exactly once
"""
