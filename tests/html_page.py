"""Parts of a report's page that tests read."""

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements, texts, rows and scripts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.parts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr" and "data-check" in dict(attrs):
            self.rows.append((dict(attrs)["data-verdict"] or "", []))
        if tag == "td" and self.rows:
            self.rows[-1][1].append("")
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif "style" not in self.open:
            self.parts.append(data)
            if "td" in self.open and self.rows:
                self.rows[-1][1][-1] += data

    def specs(self) -> list[dict[str, object]]:
        return [json.loads(s) for kind, s in self.scripts if kind]
