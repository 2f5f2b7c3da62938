"""The array and the functions of the namespace: what users write."""
