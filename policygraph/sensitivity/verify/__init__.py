"""Certificates checked again, by a path that shares no code with the rungs; start at ``certificates``."""
