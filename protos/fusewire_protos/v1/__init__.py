"""Version 1 of the wire: the .proto file and its stubs."""
