"""The version of the library; imports nothing."""

__version__ = "0.1.0"
