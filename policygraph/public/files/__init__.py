"""Policy files in TOML; start at ``reading``, the forms are in ``schema``. pydantic is imported when a file is read."""

from policygraph.public.files.problems import PolicyFileError, Problem
from policygraph.public.files.reading import PolicyFile, json_schema, load, loads
from policygraph.public.files.writing import dumps

__all__ = ["PolicyFile", "PolicyFileError", "Problem", "dumps", "json_schema", "load", "loads"]
