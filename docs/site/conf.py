"""How Sphinx makes the site: the pages of the repository where they are, and a reference from docstrings.

``nox -s site`` runs it. The source folder is the root of the repository, so that links between pages are the same here as on a code host.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pages

import policygraph

project = "policygraph"
author = "the authors of policygraph"
release = version = policygraph.__version__
html_title = f"policygraph {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = pages.ROOT_PAGE
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/**",
    "benchmarks/**.md",
]
exclude_patterns = ["docs/site/**", "**/.*"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 5
nitpicky = True
# Types in signatures come from the annotations of other libraries and from TypeVars; every other reference must resolve.
nitpick_ignore_regex = [("py:class", ".*"), ("py:data", ".*"), ("py:obj", ".*"), ("py:exc", ".*")]
# Code blocks may be fragments that no lexer reads; annotations name classes that two modules show, such as pg.Policy and pg.extend.Policy.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_static_path: list[str] = []
html_theme_options = {"footer_icons": []}
maximum_signature_line_length = 90
# Colours of code that can be told from their ground (WCAG AAA); they come with the theme.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def setup(app):
    """Write the reference before the pages are read, and check what came out."""
    app.connect("builder-inited", pages.write_reference)
    app.connect("source-read", pages.add_contents)
    app.connect("missing-reference", pages.resolve)
    app.connect("build-finished", pages.finish)
