"""Version 1 of the wire: the .proto file and the stubs generated from it."""
