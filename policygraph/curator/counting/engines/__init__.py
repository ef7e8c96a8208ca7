"""Engines beside DuckDB: the same statements, compiled for where the data lie. Go on at ``compiled``, then ``postgres`` and ``spark``."""
