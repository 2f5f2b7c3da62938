"""What client and server share: wire format, op catalogue and program codec."""
