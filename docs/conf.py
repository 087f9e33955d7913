"""Configuration of the documentation: `make docs` builds `docs/_build/html`, strict and without a network.

Keep out: content. Reference pages get theirs from the code, see `_extensions/reference_pages.py`.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]

project = "graphrag_pipeline"
author = "the authors of graphrag_pipeline"
project_copyright = author
version = release = version_of("graphrag-pipeline")
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "reference_pages",
    "mathml",
]
exclude_patterns = ["_build", "_extensions"]
nitpicky = True

# Markdown: notes, definition lists, formulas, and links to headings as on GitHub.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "substitution"]
myst_heading_anchors = 4
math_renderer = html_math_renderer = "mathml"

# Python API: docstrings are Google style, single backticks in them are code.
default_role = "code"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
toc_object_entries = False
# Types of other packages and of private modules have no page to link to.
nitpick_ignore_regex = [("py:.*", r"(?!graphrag_pipeline\.[A-Z]).*")]

html_theme = "furo"
html_title = f"graphrag_pipeline {version}"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_search_scorer = str(HERE / "_static" / "search_scorer.js")
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5e8a", "color-brand-content": "#0b5e8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ec", "color-brand-content": "#7cc4ec"},
}

copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"


def setup(app: Sphinx) -> None:
    """Name languages of blocks that Pygments does not know."""
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.add_lexer("crontab", TextLexer)
