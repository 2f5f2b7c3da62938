"""What both ends agree on: the wire, the op catalogue and the program codec."""
