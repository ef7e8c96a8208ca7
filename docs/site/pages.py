"""What the site has beyond the pages of the repository: its contents, and the reference from docstrings."""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
ROOT_PAGE = "docs/README"
REFERENCE = "docs/reference/python"
"""Made by every build, and not kept in the repository."""

GROUPS = {
    "Records and policies": [
        "Domain", "Network", "Bins", "Measure", "Policy", "PolicyGraph", "BOTTOM", "secret_edges", "Families", "Unit", "LinkedUnit", "NodePrivacy",
    ],
    "Public facts": [
        "Constraint", "Cuboid", "Total", "Cell", "Cells", "StructuralZero", "LinearCount", "Sums", "count", "Degrees", "KnownEdges",
    ],
    "Sensitivity": ["sensitivity", "Sensitivity", "Move", "Query", "distance"],
    "Privacy losses and plans": ["Epsilon", "EpsilonDelta", "Rho", "plan", "compare", "expected_error"],
    "Releases": ["release", "Release", "report", "agreeing", "load", "Files", "LinkedTables", "Ledger", "OnlineCube", "OnlineAnswer", "SecureRng", "SeededRng", "SyntheticRecords", "synthetic_records"],
    "Mechanisms": [
        "Laplace", "Gaussian", "Transformed", "TransformedConsistent", "TransformedGaussian", "TransformedLaplace", "Cube", "AdaptiveCube", "Residuals", "MatrixMechanism",
        "Adaptive", "Measured", "Exponential", "Sparse", "Partitioned", "Partition", "Intervals", "Matchings", "z_order", "FreeLunch", "StatisticNoise",
    ],
    "Attacks and audits": ["attack", "audit"],
    "Errors": [
        "PolicyGraphError", "InputError", "ConstraintError", "DataError", "RefusedError", "BudgetError", "LedgerError",
    ],
}  # fmt: skip
"""The names of the package by subject; a test holds them to ``policygraph.__all__``."""

ROOMS = ("queries", "cubes", "networks", "statistics", "attacks", "extend")
"""Modules that the package shows as names."""
MODULES = ("policygraph.conformance", "policygraph.opendp", "policygraph.studio", "policygraph.check")
"""Public modules beside the package."""
PLAIN = {"__version__"}


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module."""
    return [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]


def public() -> dict[str, list[str]]:
    """Every public name that the reference must have, by module."""
    package = import_module("policygraph")
    found = {"policygraph": [name for name in names_of(package) if name not in PLAIN]}
    for room in ROOMS:
        found[f"policygraph.{room}"] = names_of(getattr(package, room))
    for name in MODULES:
        found[name] = names_of(import_module(name))
    return found


def objects() -> dict[tuple[str, str], Any]:
    """What each public name stands for."""
    package = import_module("policygraph")
    homes = {f"policygraph.{room}": getattr(package, room) for room in ROOMS}
    return {
        (module, name): getattr(homes[module] if module in homes else import_module(module), name)
        for module, names in public().items()
        for name in names
    }


def directive(module: str, name: str, known: dict[tuple[str, str], Any]) -> str:
    """How autodoc is asked for one name; a class or function with two names has one description."""
    value = known[module, name]
    if inspect.isclass(value) or inspect.isroutine(value):
        first = next(key for key, each in known.items() if each is value)
        if first != (module, name):
            return f".. py:data:: {name}\n\n   Another name of :obj:`{'.'.join(first)}`.\n"
    kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"
    kind = "exception" if inspect.isclass(value) and issubclass(value, Exception) else kind
    shown = f".. auto{kind}:: {module}.{name}\n"
    return f"{shown}   :no-value:\n" if kind == "data" else shown


def slug(title: str) -> str:
    """File name of a page."""
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def page(title: str, body: str) -> str:
    """A page of reStructuredText."""
    return f"{title}\n{'=' * len(title)}\n\n{body}\n"


def write_reference(app: Any) -> None:
    """Write the pages of the reference, each only when it changed."""
    folder = ROOT / REFERENCE
    folder.mkdir(exist_ok=True)
    made: dict[str, str] = {}
    known = objects()
    for title, names in GROUPS.items():
        made[slug(title)] = page(title, "\n".join(directive("policygraph", name, known) for name in names))
    for module, names in public().items():
        if module != "policygraph":
            about = (
                inspect.getdoc(
                    import_module(module)
                    if module in MODULES
                    else getattr(import_module("policygraph"), module.partition(".")[2])
                )
                or ""
            )
            first = about.partition("\n\n")[0]
            made[slug(module)] = page(
                module,
                f".. py:currentmodule:: {module}\n\n{first}\n\n"
                + "\n".join(directive(module, name, known) for name in names),
            )
    contents = "\n".join(f"   {name}" for name in made)
    made["index"] = page(
        "Python reference",
        f"Every public name, from its docstring.\n\n.. toctree::\n   :maxdepth: 1\n\n{contents}",
    )
    for old in folder.glob("*.rst"):
        if old.stem not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


INDEXES = {ROOT_PAGE: "docs", "docs/explanation/decisions/README": "docs/explanation/decisions"}
"""Pages whose links are the contents of the side bar, and where their links start."""


def add_contents(app: Any, name: str, content: list[str]) -> None:
    """Make the links of each section of an index a part of the side bar."""
    if name not in INDEXES:
        return
    parts = re.split(r"^## (.+)$", content[0], flags=re.MULTILINE)
    sections = [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    seen = {name}
    for title, body in sections:
        entries = []
        for link in re.findall(r"\]\(([^)#\s]+)\.md(?:#[^)]*)?\)", body):
            target = posixpath.normpath(posixpath.join(INDEXES[name], link))
            if target not in seen:
                entries.append("/" + target)
                seen.add(target)
        if title.startswith("Reference"):
            entries.insert(0, f"/{REFERENCE}/index")
        if title.startswith("The project"):
            entries.append("/README")
        if entries:
            caption = f":caption: {title.partition(':')[0]}\n" if title else ""
            content[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(entries) + "\n```\n"


def own_names() -> set[str]:
    """Every function, class, method and module of the package."""
    found = {"policygraph"}
    for path in (ROOT / "policygraph").rglob("*.py"):
        found.add(path.parent.name if path.stem == "__init__" else path.stem)
        kinds = (ast.FunctionDef, ast.ClassDef)
        found |= {
            node.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, kinds)
        }
    return found


def resolve(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A reference that Sphinx does not find: a public name by its last word, or a name inside the package, which has no page; anything else stays broken."""
    if node.get("refdomain") != "py" or node.get("reftype") in ("class", "exc", "obj", "data"):
        return None
    if not hasattr(app, "policygraph_names"):
        app.policygraph_names = own_names()
    from sphinx.util.nodes import make_refnode

    last = node["reftarget"].rpartition(".")[2]
    for module, names in public().items():
        if last in names:
            found = env.get_domain("py").objects.get(f"{module}.{last}")
            if found is not None:
                return make_refnode(app.builder, node.get("refdoc"), found.docname, found.node_id, text)
    return text if last in app.policygraph_names else None


def accessible(page: str) -> str:
    """The page with what the theme leaves out: code that scrolls by keyboard, and the level of the headings in the side bar.

    Examples
    --------
    >>> accessible('<p class="caption" role="heading">A</p><pre>b</pre>')
    '<p class="caption" role="heading" aria-level="2">A</p><pre tabindex="0">b</pre>'
    """
    page = page.replace('class="caption" role="heading">', 'class="caption" role="heading" aria-level="2">')
    return page.replace("<pre>", '<pre tabindex="0">')


def finish(app: Any, failure: Exception | None) -> None:
    """Let the site begin at its index, and see that it has every public name and asks for nothing from elsewhere."""
    if failure is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    (out / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>policygraph</title><meta http-equiv="refresh" content="0; url={ROOT_PAGE}.html">'
        f'<a href="{ROOT_PAGE}.html">policygraph</a>\n',
        encoding="utf-8",
    )
    known = app.env.get_domain("py").objects
    missing = [
        f"{module}.{name}"
        for module, names in public().items()
        for name in names
        if f"{module}.{name}" not in known
    ]
    if missing:
        raise RuntimeError(f"not in the reference: {', '.join(missing)}")
    for path in out.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(accessible(text), encoding="utf-8")
    outside = [
        f"{path.relative_to(out)}: {found}"
        for path in sorted(out.rglob("*.html"))
        for found in re.findall(
            r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//[^"]*"',
            path.read_text(encoding="utf-8"),
        )
    ]
    if outside:
        raise RuntimeError(f"loaded from elsewhere: {'; '.join(outside[:5])}")
