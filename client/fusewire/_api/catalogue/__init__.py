"""Functions made from the op catalogue."""
