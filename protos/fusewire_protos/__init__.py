"""The contract of both ends: wire, op catalogue and program codec."""
