"""Records where the time of a program goes, and shows it."""
