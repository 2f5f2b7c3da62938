"""Users' operands become ops."""
