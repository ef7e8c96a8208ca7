"""Policy files in TOML; start at ``policy_file``, the forms are in ``schema``. pydantic is imported when a file is read."""

from policygraph.files.policy_file import PolicyFile, dumps, json_schema, load, loads
from policygraph.files.problems import FileProblem, PolicyFileError

__all__ = ["FileProblem", "PolicyFile", "PolicyFileError", "dumps", "json_schema", "load", "loads"]
