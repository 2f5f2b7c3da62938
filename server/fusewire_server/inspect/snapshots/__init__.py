"""Its tables as data."""
