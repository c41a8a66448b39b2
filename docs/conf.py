"""The documentation site: `make docs` builds it into build/site, without the network."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))
# kernels of the tutorials talk over loopback and warn about it in every build
settings = Path(tempfile.mkdtemp(prefix="coterie-docs-"), "profile_default")
settings.mkdir()
(settings / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(settings.parent)

import coterie  # noqa: E402

project = "coterie"
author = "The coterie developers"
copyright = author
version = release = coterie.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "mathml",  # docs/site: formulas as MathML, which browsers draw without a script or a font
    "generated",  # docs/site: tables from the ledger, the list of methods
    "notebooks",  # docs/site: the tutorials as .ipynb files to download
    "docstrings",  # docs/site: docstrings are plain text with code in backticks
]
exclude_patterns = ["_generated/*.*", "_generated/figures", "_generated/reference", "site"]
nitpicky = True
# types in signatures that have no page of their own
nitpick_ignore_regex = [("py:.*", r"(?!coterie\.)..*")]
suppress_warnings = ["myst.strikethrough"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
math_number_all = False
math_eqref_format = "({number})"
numfig = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "class"
default_role = "code"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_preprocess_types = False

html_theme = "pydata_sphinx_theme"
html_title = "coterie"
html_static_path = ["_static"]
html_css_files = ["coterie.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_search_scorer = str(HERE / "site" / "scorer.js")
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "coterie",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search the site",
    "header_links_before_dropdown": 8,
}
html_sidebars = {page: [] for page in ("index", "install", "quickstart", "which-method", "api")}
