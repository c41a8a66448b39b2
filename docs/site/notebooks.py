"""The tutorials as .ipynb files beside their pages, for those who want to run them."""

from pathlib import Path

from myst_nb.core.read import read_myst_markdown_notebook


def write(app, error):
    if error or app.builder.format != "html":
        return
    import nbformat

    out = Path(app.outdir) / "notebooks"
    out.mkdir(exist_ok=True)
    for page in sorted((Path(app.srcdir) / "tutorials").glob("*.md")):
        text = page.read_text()
        if text.startswith("---"):
            made = read_myst_markdown_notebook(text)
            made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
            nbformat.write(nbformat.from_dict(made), out / f"{page.stem}.ipynb")


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
