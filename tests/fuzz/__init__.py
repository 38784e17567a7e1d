"""Hostile bytes for every decoder of wire, disk, metadata, WebHDFS and gRPC: ``make fuzz``, and a little in each draw.

``decoders.py`` lists the decoders, each with the error that it declares; ``corpus`` has small inputs that each takes,
and those that once broke one; ``campaign.py`` changes them and looks: no other error, no more memory than the input
allows, and the same answer to the same bytes.
"""
