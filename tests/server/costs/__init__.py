"""Frames that cost a server more than their sender: kinds of them, as data, and what each kind costs."""
