"""Take the pictures in docs/screenshots: fit small models, write their reports, photograph them.

    python docs/make_screenshots.py [--reports DIR]

Needs Chromium with its driver, and the data sets usps, reuters_r8 and wholesale
(docs/datasets.md).
Reports that are already in DIR are used as they are, so that a second go is quick.
"""

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "reporting" / "browser"))

import browser  # noqa: E402

RUNS = {
    "usps": ("kith", 10),
    "digits": ("idec", 10),
    "reuters_r8": ("kith", 8),
    "wholesale": ("dekm", 4),
}
COMPARED = ("kmeans", "ae_kmeans", "dec")

# picture: page, parts of the page (None = the first screen), width, theme
SHOTS = {
    "report": ("usps", None, 1200, "light"),
    "report-dark": ("reuters_r8", None, 1200, "dark"),
    "map": ("usps", "#map-section", 1200, "light"),
    "map-selected": ("usps", "#map-section", 1200, "dark"),
    "cards-images": ("usps", "#clusters", 1200, "light"),
    "cards-text": ("reuters_r8", "#clusters", 1200, "light"),
    "cards-table": ("wholesale", "#clusters", 1200, "light"),
    "between": ("digits", "#between", 1200, "light"),
    "why": ("usps", "#choice", 1200, "light"),
    "trust": ("usps", "#trust", 1200, "light"),
    "training": ("digits", "#training", 1200, "light"),
    "evaluation": ("usps", "#evaluation", 1200, "light"),
    "use": ("usps", "#use", 1200, "light"),
    "phone": ("usps", None, 390, "light"),
    "comparison": ("comparison", None, 1200, "light"),
}
MOST = 1300  # pixels of height


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=Path, help="folder to keep or reuse the reports")
    reports = parser.parse_args().reports or Path(tempfile.mkdtemp(prefix="coterie-reports-"))
    if browser.missing():
        sys.exit(browser.missing())
    pages = {name: _report(reports, name, *how) for name, how in RUNS.items()}
    pages["comparison"] = _comparison(reports)
    out = HERE / "screenshots"
    out.mkdir(exist_ok=True)
    driver = browser.start()
    try:
        for name, (page, part, width, theme) in SHOTS.items():
            _shoot(driver, pages[page], part, width, theme, "selected" in name).save(
                out / f"{name}.png", optimize=True
            )
            print(out / f"{name}.png")
    finally:
        driver.quit()


def _report(folder, name, method, k):
    page = folder / name / "report.html"
    if not page.exists():
        from coterie import load_data, reporting
        from coterie.registry import get

        data = load_data(name)
        model = get(method)(k, random_state=0, verbose=1).fit(data.X)
        model.save(page.parent)
        reporting.write(page.parent, model, data, labels=data.labels, verbose=1)
    return page


def _comparison(folder):
    page = folder / "compare.html"
    if not page.exists():
        from coterie import load_data, metrics, reporting
        from coterie.registry import get

        data, results = load_data("wholesale"), []
        for method in COMPARED:
            for seed in range(3):
                model = get(method)(4, random_state=seed).fit(data.X)
                z = model.transform(data.X)
                results.append(
                    {
                        "name": data.name,
                        "method": method,
                        "seed": seed,
                        "params": {"n_clusters": 4},
                        "scores": metrics.scores(data.labels, model.labels_),
                        "label_free": metrics.label_free(z, model.labels_),
                        "seconds": sum(model.seconds_.values()),
                        "labels": model.labels_,
                        "embedding": z,
                    }
                )
        reporting.write_comparison(results, page, data.X)
    return page


def _shoot(driver, page, part, width, theme, select):
    """The first screen of a page, or one of its parts."""
    height = 844 if width < 600 else 1000
    browser.size(driver, width, height)
    driver.get(page.resolve().as_uri())
    driver.execute_script("setTheme(arguments[0])", theme)
    if select:
        driver.execute_script("coterie.select(3)")
    if part:
        full = driver.execute_script("return document.documentElement.scrollHeight")
        browser.size(driver, width, full)
    time.sleep(0.5)  # the map draws in the next frame
    image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    if part:
        box = driver.execute_script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.top + scrollY, b.bottom + scrollY]",
            part,
        )
        image = image.crop((0, round(box[0]), width, min(round(box[1]) + 16, round(box[0]) + MOST)))
    return image


if __name__ == "__main__":
    main()
