"""`write`: one self-contained page about one run."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup, escape

from coterie.palette import PALETTE, css
from coterie.runtime.progress import Progress
from coterie.storage.tensors import write_bytes

from . import baselines, charts, choice, coverage, maps, model_pictures, sections, sentences
from .all_cards import all_cards
from .cluster_stats import gather, raw_parts
from .doubts import DIVIDED, ground_doubts
from .encode import b64, bytes_of, pack_ids, policy
from .row_pictures import Canvas, sprites

FOLD = 24  # above this many clusters the cards are closed until asked for
TEXT_BYTES = 4_000_000  # what hover lines of texts may take


def write(run_dir, model, dataset, labels=None, out=None, verbose=0, *, outcome=None, beside=None):
    """Write the report of a run.

    Parameters
    ----------
    run_dir : path, or None for a model that has no run folder
        The run folder; ``run.toml`` and ``embedding.npy`` in it are used when they are there.
    model : fitted estimator
    dataset : coterie.data.Dataset
    labels : (n,) array, optional
        Known classes, shown in a section that is marked as evaluation only.
    out : path, optional
        The page; ``run_dir/report.html`` by default.
    verbose : int
        1 shows progress.
    outcome, beside : what a fit already knows of its rows (`estimator.result.Outcome`), and of
        k-means beside it (`common_ground.KMeansBaseline`); found out if not given

    Returns
    -------
    path : pathlib.Path
    """
    run_dir = None if run_dir is None else Path(run_dir)
    out = Path(out) if out else (run_dir or Path()) / "report.html"
    seed = int(getattr(model, "seed_", 0) or 0) % 2**31
    with Progress(verbose) as progress:
        progress.phase("report", total_steps=100)
        page = _page(run_dir, model, dataset, labels, seed, progress.step, outcome, beside)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(out, page.encode("utf-8", "replace"))
    return out


def _page(run_dir, model, dataset, labels, seed, step, outcome, beside):
    facts = gather(model, dataset, _array(run_dir, "embedding.npy"), seed, outcome)
    step(10)
    beside = baselines.compare(facts, model, dataset.given_to(model), seed, beside)
    step(20)
    seen = ground_doubts(facts.ground, facts.labels) if facts.ground else []
    agreement = facts.ground.agreement(facts.labels) if facts.ground else {}
    notes = list(getattr(model, "notes_", ()))
    for j in {j for _, numbers in seen for j in numbers}:
        facts.reasons[j].append(DIVIDED)
    step(25)
    raw = next((b["labels"] for b in beside if b["key"] == "raw"), None)
    parts = raw_parts(facts, raw) if raw is not None else {}
    canvas = Canvas(dataset.X) if facts.kind == "image" else None
    placed = {"pca": maps.pca_map(facts.z, seed)}
    tsne = maps.tsne_map(facts.z, seed, lambda done: step(25 + int(50 * done)))
    if tsne is not None:
        placed["tsne"] = tsne
    step(75)
    title = getattr(model, "title", "") or type(model).__name__
    cards = all_cards(facts, model, dataset, canvas, seed, parts)
    step(85)
    paths = model_pictures.paths(model, canvas, facts)
    spaces = model_pictures.spaces(model, dataset.X, canvas, facts)
    if spaces:
        spaces["chart"] = charts.histogram(
            spaces["beta"],
            "weight of each dimension",
            None,
            360,
            60,
            ("cluster space", "shared space"),
        )
    step(90)
    graph = _array(run_dir, "neighbours.npy")
    near = maps.nearest_rows(getattr(model, "neighbours_", graph), facts.z, seed)
    data = {
        "n": facts.n,
        "k": facts.k,
        "soft": facts.has_rivals,
        "sizes": facts.sizes.tolist(),
        "names": [c["name"] for c in cards],
        "palette": PALETTE,
        "ids": pack_ids(facts.ids),
        "labels": b64(facts.labels.astype(np.uint16 if facts.k > 256 else np.uint8)),
        "confidence": b64(bytes_of(facts.confidence)),
        "maps": {name: pack_map(xy, facts.labels) for name, xy in placed.items()},
        "sprites": sprites(dataset.X, canvas) if canvas else None,
        "lines": _lines(dataset, facts),
        "near": None if near is None else b64(near),
        "paths": paths or None,
        "path_steps": model_pictures.STEPS,
    }
    return render(
        "report.html.j2",
        ("map.js", "theme.js", "report.js"),
        data,
        page_title=f"{sentences.headline(facts)}: {facts.name}",
        crumb=f"{facts.name} · {title}",
        headline=sentences.headline(facts),
        sentences=sentences.sentences(
            facts, title, beside, bool(seen) or any(map(sentences.out_of_time, notes)), notes
        ),
        warnings=sentences.warnings(facts, getattr(model, "history_", ()), notes, seen),
        first_look=sentences.first_look(parts),
        tiles=sections.tiles(facts, model),
        size_bar=charts.size_bar(facts.sizes),
        noun=facts.noun,
        n=f"{facts.n:,}",
        k=facts.k,
        alive=[j for j in range(facts.k) if facts.sizes[j]],
        cards=cards,
        cards_note=sections.cards_note(facts),
        glance=facts.k <= FOLD,
        folded=facts.k > FOLD,
        map_names=[(k, n) for k, n in (("tsne", "t-SNE"), ("pca", "PCA")) if k in placed],
        map_note=_map_note(facts, placed, data["sprites"]),
        id_hint=f"row name, e.g. {facts.ids[0]}"[:40],
        paths=bool(paths),
        spaces=spaces,
        baselines=sections.baseline_rows(beside),
        families=sections.family_rows(agreement),
        second=sections.second_opinion(facts, model),
        choice=choice.section(model),
        label_free=sections.label_free(facts),
        confidence_note=sections.confidence_note(facts),
        confidence_chart=sections.confidence_chart(facts),
        curves=sections.curves(getattr(model, "history_", ())),
        cost=sections.cost(model),
        kept=coverage.section(facts, model, dataset),
        evaluation=sections.evaluation(facts, labels, dataset),
        load_path=str(run_dir) if run_dir else "",
        shape_note=sections.shape_note(dataset),
        params=sections.params(model),
        made=sections.made(model, dataset, _run_toml(run_dir)),
        footer="Written by coterie. This page is complete in itself and loads nothing.",
    )


def render(template, scripts, data, **values):
    """Fill a template of the package; style and scripts are inlined and pinned by their hash."""
    files = resources.files("coterie.reporting")
    style = files.joinpath("static/page.css").read_text("utf-8") + css()
    script = "\n".join(files.joinpath(f"static/{name}").read_text("utf-8") for name in scripts)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("coterie.reporting", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment.get_template(template).render(
        data=data, style=style, script=script, policy=policy(style, script), **values
    )


def breakable(name):
    """A name that may be broken after its own signs and before its own capitals, so that no line
    breaks it inside a word."""
    parts = re.split(r"(?<=[_/.:-])(?=\w)|(?<=[a-z\d])(?=[A-Z])", str(name))
    return Markup("<wbr>").join(map(escape, parts))


def pack_map(xy, labels):
    """Coordinates on a 16-bit grid, and a place for each cluster's number."""
    grid = maps.quantize(xy)
    tags = []
    for j in np.unique(labels):
        rows = np.flatnonzero(labels == j)
        middle = np.median(grid[rows], axis=0)
        # a member near the middle, so that the number stands on its own cluster
        at = grid[rows[np.argmin(((grid[rows] - middle) ** 2).sum(1))]]
        tags.append({"cluster": int(j), "x": int(at[0]), "y": int(at[1])})
    tags.sort(key=lambda t: -int((labels == t["cluster"]).sum()))
    return {"xy": b64(grid), "tags": tags}


def _lines(dataset, facts):
    """The beginning of each text, as much as fits."""
    if facts.kind != "text" or dataset.texts is None:
        return None
    from .cluster_cards import clip

    most = int(min(140, max(20, TEXT_BYTES / max(1, facts.n))))
    return [clip(t, most) for t in dataset.texts]


def _map_note(facts, placed, sheet):
    note = ""
    if not maps.tsne_installed():
        note += " For a t-SNE map install openTSNE."
    elif "tsne" in placed and facts.n > maps.TSNE_ROWS:
        note += (
            f" t-SNE was fitted on {maps.TSNE_ROWS:,} rows; "
            "the others were put next to their nearest ones."
        )
    if sheet and sheet["step"] > 1:
        note += f" Hover pictures are kept for every {sheet['step']}th row."
    return note


def _array(run_dir, name):
    """An array of the run folder, or None."""
    if run_dir is None:
        return None
    try:
        return np.load(run_dir / name, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None


def _run_toml(run_dir):
    if run_dir is None:
        return {}
    try:
        return tomllib.loads((run_dir / "run.toml").read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
