"""Formulas as MathML, made while the site is built: no script, no font, nothing to fetch."""

from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number


def inline(writer, node):
    writer.body.append(convert(node.astext(), display="inline"))
    raise SkipNode


def block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({escape(str(number))})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(convert(node.astext().strip(), display="block"))
    writer.body.append("</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
