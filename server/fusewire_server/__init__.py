"""The service: sessions, coalescing, buffers and inspection."""
