"""WebHDFS over HTTP: the library's server, the operations, their parameters, replies and rates; the OAuth2
token endpoint."""
