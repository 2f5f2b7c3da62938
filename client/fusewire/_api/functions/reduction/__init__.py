"""One element from many."""
