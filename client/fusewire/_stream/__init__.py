"""One session's frames, out and in."""
