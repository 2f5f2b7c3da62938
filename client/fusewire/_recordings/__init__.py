"""Records a session's stream in a file, and replays it."""
