"""Every link of the built site leads somewhere, and no page asks for anything from the network.

python docs/site/links.py build/site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}


class Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # address, and whether a browser loads it itself
        self.anchors: set[str] = set()
        self.feed(text)

    def has(self, fragment: str) -> bool:
        return not fragment or unquote(fragment) in self.anchors

    def handle_starttag(self, tag, attrs):
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append((found["href"], False))
        if tag == "link" and found.get("rel") != "canonical" and "href" in found:
            self.links.append((found["href"], True))
        if tag in LOADED and LOADED[tag] in found:
            self.links.append((found[LOADED[tag]], True))


def check(site: Path) -> list[str]:
    found = [
        path for path in site.rglob("*.html") if "_static" not in path.parts
    ]  # templates there
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in found}
    wrong = []
    for path, page in pages.items():
        for address, loaded in page.links:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or parts.netloc:
                if loaded:
                    wrong.append(f"{path.name}: loads {address} from the network")
                continue
            if parts.scheme:  # mailto:, data:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                wrong.append(f"{path.name}: {address} leads nowhere")
            elif target in pages and not pages[target].has(parts.fragment):
                wrong.append(f"{path.name}: {address} names a place that is not there")
    return sorted(set(wrong))


if __name__ == "__main__":
    found = check(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link of the site leads somewhere")
    sys.exit(bool(found))
