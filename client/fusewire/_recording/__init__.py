"""Records ops on a tape, until they are sent."""
