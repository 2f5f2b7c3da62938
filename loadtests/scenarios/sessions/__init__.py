"""Sessions differ, run ahead or vanish."""
