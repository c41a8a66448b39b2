"""A paper's protocol, read from its TOML file: data sets, rows, tables, figures."""

import tomllib
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from typing import Any

PAPERS = ("cnet", "dkm", "dekm", "precise_feature", "acedec")
PROFILES = ("paper", "default")


@dataclass(frozen=True)
class Data:
    """A column of the paper: its data set, and what stands for it here.

    `key` is its name in published.jsonl; `ours` its name in the ledger ("": it cannot be had);
    `base` the catalogue's name where that differs, read with `options`; `stand_in` says what takes
    the place of rows that cannot be had; `preset_as` whose published settings are taken where
    there are none under `base`; `settings` go to every method that knows them.
    """

    key: str
    title: str
    ours: str = ""
    base: str = ""
    options: dict = field(default_factory=dict)
    classes: int | None = None
    stand_in: str = ""
    preset_as: str = ""
    settings: dict = field(default_factory=dict)
    seeds: int | None = None

    @property
    def source(self) -> str:
        return self.base or self.ours


@dataclass(frozen=True)
class Row:
    """A model of a table: our method, or only the published figures of one that is not here.

    `published` is [method, variant] in published.jsonl; `also` are other names of the variant in
    the ledger; `preset` names the method whose published settings are shared; `profile` is
    "default" where the paper has no settings.
    """

    label: str
    method: str = ""
    variant: str = ""
    also: tuple[str, ...] = ()
    published: tuple[str, str] | None = None
    settings: dict = field(default_factory=dict)
    score: str = ""  # "km": k-means on the embedding
    preset: str = ""
    profile: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.published or (self.method, self.variant)


@dataclass(frozen=True)
class Item:
    """A table or a figure."""

    paper: str
    key: str
    title: str
    kind: str = "table"
    rows: tuple[Row, ...] = ()
    datasets: tuple[Data, ...] = ()
    metrics: tuple[str, ...] = ()
    seeds: int = 1
    # tables
    published: str = ""
    columns: tuple[str, ...] = ("mean",)
    bold: str = "none"  # ttest, best, above_mean, none
    star: bool = False
    underline: bool = False
    per_block: int = 4
    percent: bool = True
    decimals: int = 1
    dashes: tuple[tuple[str, str], ...] = ()  # (row label, data set): not part of the table
    # figures
    grid: dict = field(default_factory=dict)
    stat: str = "values"
    commands: tuple[str, ...] = ()
    draw: dict = field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.paper}:{self.key}"

    @property
    def from_ledger(self) -> bool:
        return self.kind in ("table", "heat", "bars", "curve")


@dataclass(frozen=True)
class Paper:
    """Everything that is to be reproduced of one paper."""

    key: str
    title: str
    reference: str
    nmi: str  # nmi (arithmetic mean of the entropies) or nmi_geo
    protocol: str
    caveats: tuple[str, ...]
    items: tuple[Item, ...]
    methods: dict = field(default_factory=dict)  # settings of every run of a method
    baselines: dict = field(default_factory=dict)  # this paper's settings of others' methods
    scored: float | None = None  # share of the rows that the paper scores, where not all
    findings: tuple[dict, ...] = ()  # rows, data (titles; none: all), text: why a figure is missed

    def finding(self, row: str, data: str) -> str:
        """Why our runs of a model on a data set stay below the published figure, if known."""
        for entry in self.findings:
            if row in entry.get("rows", [row]) and data in entry.get("data", [data]):
                return entry["text"]
        return "The cause was not looked for yet."

    def baseline(self, row: Row, data: Data) -> dict | None:
        """This paper's own settings of a method that is not its own, if it gives some.

        A later one wins: [baselines.common], then [baselines.METHOD]; in each of them its own
        keys, [variants.VARIANT], [DATA], [DATA.VARIANT].
        """
        if row.preset or row.method not in self.baselines:
            return None
        found: dict = {}
        for section in (self.baselines.get("common", {}), self.baselines[row.method]):
            own = section.get(data.key, {})
            for part in (section, section.get("variants", {}).get(row.variant, {}), own):
                found |= {k: v for k, v in part.items() if not isinstance(v, dict)}
            found |= own.get(row.variant, {})
        return found

    def item(self, key: str) -> Item:
        for item in self.items:
            if item.key == key:
                return item
        raise ValueError(
            f"{self.key} has no {key}; it has: {', '.join(item.key for item in self.items)}"
        )


def read(key: str) -> Paper:
    """The protocol of one paper."""
    if key not in PAPERS:
        raise ValueError(f"there is no paper {key}; there are: {', '.join(PAPERS)}")
    text = resources.files("coterie.research.papers").joinpath(f"{key}.toml").read_text("utf-8")
    raw = tomllib.loads(text)
    data = {entry["key"]: Data(**entry) for entry in raw["datasets"]}
    lists = {name: tuple(_row(r) for r in rows) for name, rows in raw.get("rows", {}).items()}
    items = [_item(key, {"kind": "table", **t}, data, lists, raw) for t in raw["tables"]]
    items += [_item(key, f, data, lists, raw) for f in raw["figures"]]
    return Paper(
        key,
        raw["title"],
        raw["reference"],
        raw["nmi"],
        raw["protocol"],
        tuple(raw["caveats"]),
        tuple(items),
        raw.get("methods", {}),
        raw.get("baselines", {}),
        raw.get("scored"),
        tuple(raw.get("findings", ())),
    )


def read_all() -> list[Paper]:
    return [read(key) for key in PAPERS]


def find(name: str, papers: list[Paper]) -> tuple[Paper, list[Item]]:
    """``cnet`` is all of a paper, ``cnet:table3`` one of its tables or figures."""
    key, _, part = name.partition(":")
    paper = next((p for p in papers if p.key == key), None)
    if paper is None:
        raise ValueError(f"there is no paper {key}; there are: {', '.join(PAPERS)}")
    return paper, [paper.item(part)] if part else list(paper.items)


def _row(raw: dict) -> Row:
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    return Row(**given)


def _item(paper: str, raw: dict, data: dict, lists: dict, whole: dict) -> Item:
    known = {f.name for f in fields(Item)}
    if odd := set(raw) - known:
        raise ValueError(f"{paper}.toml, {raw.get('key')}: unknown keys {', '.join(sorted(odd))}")
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    rows = given.get("rows", ())
    given["rows"] = lists[rows] if isinstance(rows, str) else tuple(_row(r) for r in rows)
    given["datasets"] = tuple(data[name] for name in given.get("datasets", ()))
    given["dashes"] = tuple(tuple(pair) for pair in given.get("dashes", ()))
    given.setdefault("seeds", whole["seeds"])
    return replace(Item(paper, raw["key"], raw["title"]), **given)
