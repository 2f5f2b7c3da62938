"""The op catalogue, dtypes, shapes."""
