"""An element from each place."""
