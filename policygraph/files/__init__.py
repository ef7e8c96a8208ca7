"""Policy files in TOML; start at ``reading``, the forms are in ``schema``. pydantic is imported when a file is read."""

from policygraph.files.problems import PolicyFileError, Problem
from policygraph.files.reading import PolicyFile, json_schema, load, loads
from policygraph.files.writing import dumps

__all__ = ["PolicyFile", "PolicyFileError", "Problem", "dumps", "json_schema", "load", "loads"]
