"""Tables that no client can make slow. Pure."""
