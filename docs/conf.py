"""Settings of the site: `make docs` builds it with Sphinx into build/site, without a network."""

from __future__ import annotations

import importlib
import sys
import zlib
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "resgym"
author = "the resgym contributors"
copyright = f"2026, {author}"
release = version = version_of("resgym")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sphinxcontrib.katex",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "resgym"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"

# Pages are MyST Markdown. Tutorials are notebooks; the build runs them, and keeps their outputs
# in a cache until their code changes.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

# The pages of the API are made from the docstrings, one for each public object.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
default_role = "py:obj"
maximum_signature_line_length = 80
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"

# Style sheet and fonts of KaTeX 0.16.22 lie in docs/_static; the extension brings the scripts.
katex_css_path = "katex/katex.min.css"


def inventory(name: str) -> str:
    """Packs docs/inventories/NAME.txt, a list of names and addresses, as Sphinx reads it."""
    header, *entries = (HERE / "inventories" / f"{name}.txt").read_text().splitlines()
    lines = []
    for entry in entries:
        target, role, address = entry.split()
        lines.append(f"{target} py:{role} 1 {address} -\n")
    packed = HERE.parent / "build" / "inventories" / f"{name}.inv"
    packed.parent.mkdir(parents=True, exist_ok=True)
    head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: {header}\n"
    head += "# The remainder of this file is compressed using zlib.\n"
    packed.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
    return str(packed)


# Other projects' pages that ours link to. The lists lie in the repository: a build has no network.
intersphinx_mapping = {
    name: (address, inventory(name))
    for name, address in {
        "gymnasium": "https://gymnasium.farama.org/",
        "numpy": "https://numpy.org/doc/stable/",
        "python": "https://docs.python.org/3/",
        "stable_baselines3": "https://stable-baselines3.readthedocs.io/en/master/",
        "torch": "https://docs.pytorch.org/docs/stable/",
    }.items()
}


class Keys(SphinxDirective):
    """The table of the keys of a section, or of a job's configuration: `MODULE:CLASS`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        from keys import Section, key_rows

        module, _, name = self.arguments[0].partition(":")
        found = getattr(importlib.import_module(module), name)
        rows = key_rows(found if issubclass(found, Section) else found.Config)
        lines = [f"| `{key}` | {meaning} |" for key, meaning in rows]
        return self.parse_text_to_nodes("\n".join(["| key | meaning |", "|---|---|", *lines]))


def setup(app: Any) -> None:
    """Add the directive ```{keys} MODULE:CLASS```, and list fields of named tuples only once."""
    app.add_directive("keys", Keys)
    app.connect(
        "autodoc-skip-member", lambda *given: type(given[3]).__name__ == "_tuplegetter" or None
    )
