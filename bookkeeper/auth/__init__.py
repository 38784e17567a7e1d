"""Who is on the other end of a connection: providers of authentication, both sides.

A provider is chosen by its explicitly configured name and never looked for elsewhere: ``none``, ``tls`` (the
certificate of the TLS handshake), or ``MODULE:ATTRIBUTE`` for one of your own.

Read in this order
    config      which provider, and what it is told: the table ``[auth]``
    provider    the interface of one of your own
    loading     from its name to it
    certificate what a certificate says about its owner

Nothing is imported here: most processes need ``config`` only.
"""
