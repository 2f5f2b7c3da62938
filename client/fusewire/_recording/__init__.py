"""Records ops on a tape, finds the loop in it, and cuts it into segments."""
