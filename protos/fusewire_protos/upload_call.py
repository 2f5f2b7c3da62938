"""Names the metadata of an upload call. A download call names the session in the same way.

A client's call names the session and the handle. A server that holds the session answers at once, before it reads any
bytes, with the same session in its initial metadata. A server that does not hold the session ends the call without
this answer.
"""

SESSION_HEADER = "fusewire-session"  # 32 hexadecimal digits
HANDLE_HEADER = "fusewire-handle"  # a decimal number
