"""The sentences of the report as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup


@cache
def _parser() -> MarkdownIt:
    # raw HTML stays text, and links can only lead to pages, not run scripts
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def to_html(
    lines: str | Iterable[str], links: Mapping[str, str], *, inline: bool = False
) -> Markup:
    """Markdown of the report as HTML; text is escaped.

    Parameters
    ----------
    lines
        Markdown, one paragraph or several lines.
    links
        Where each link of the report leads on this page; the text of any other link stays, without
        a link.
    inline
        One sentence, without a paragraph around it.
    """
    text = lines if isinstance(lines, str) else "\n".join(lines)
    parser = _parser()
    tokens = parser.parseInline(text) if inline else parser.parse(text)
    for token in tokens:
        _redirect(token.children or [], links)
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _redirect(tokens: list[Any], links: Mapping[str, str]) -> None:
    """Point the links of the report to places of this page; hide those that have none."""
    kept = True
    for token in tokens:
        if token.type == "link_open":
            target = links.get(str(token.attrGet("href")))
            kept = target is not None
            if target is not None:
                token.attrs = {"href": target}
            else:
                token.tag, token.attrs = "span", {}
        elif token.type == "link_close" and not kept:
            token.tag = "span"
