"""One session's frames: segments, fetches and uploads out, answers and credit in."""
