"""The pages in a real browser: they work, they load nothing, they run nothing of the user's."""

import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import pytest

import fakes
from coterie import reporting
from coterie.reporting import maps
from fakes import ATTACK

_spec = importlib.util.spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
    pytest.mark.xdist_group("browser"),
]

PAINTED = "return arguments[0].getContext('2d').getImageData(0, 0, 8, 8).data.some((v) => v)"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    made = browser.start(profile=tmp_path_factory.mktemp("profile"))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of an image, a text and a table run and a comparison, with hostile text inside."""
    folder = tmp_path_factory.mktemp("pages")
    out, results = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "tsne_map", lambda z, seed, tick: maps.pca_map(z[:, ::-1], seed))
        for kind, k, cls in (
            ("images", 10, fakes.FakeSpaces),
            ("texts", 4, fakes.FakeModel),
            ("table", 3, fakes.FakeModel),
        ):
            data = getattr(fakes, kind)(attack=True)
            model = cls(k).fit(data.X)
            out[kind] = reporting.write(folder / kind, model, data, labels=data.labels)
            if kind == "table":
                for method in ("dekm", ATTACK):
                    results.append(
                        {
                            "name": ATTACK,
                            "method": method,
                            "seed": 0,
                            "params": {"k": ATTACK},
                            "scores": None,
                            "label_free": {"silhouette": 0.4},
                            "seconds": 1.0,
                            "labels": model.labels_,
                            "embedding": model.transform(data.X),
                        }
                    )
    out["comparison"] = reporting.write_comparison(results, folder / "compare.html")
    return out


def open_page(driver, path, width=1280, height=900):
    browser.size(driver, width, height)
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())


def check_quiet(driver):
    """No console message, no dialog, no request but the page itself and inline data."""
    # "rendering" is the browser's advice on the test's own reading of pixels
    said = [e for e in driver.get_log("browser") if e["source"] != "rendering"]
    assert said == []
    wanted = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            wanted.append(message["params"]["request"]["url"])
    assert wanted, "the log of requests is empty, so it proves nothing"
    assert [u for u in wanted if not u.startswith(("data:", "file:"))] == []
    assert len([u for u in wanted if u.startswith("file:")]) == 1


def find(driver, css):
    return driver.find_element("css selector", css)


def hover(driver, i):
    """Move the pointer to dot `i` of the map."""
    from selenium.webdriver import ActionChains

    canvas = find(driver, "#map")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y, w, h = driver.execute_script(
        "const m = coterie.map, p = m.place(arguments[0]);"
        "return [p[0] / m.ratio, p[1] / m.ratio, m.width / m.ratio, m.height / m.ratio]",
        i,
    )
    chain = ActionChains(driver, duration=0)
    chain.move_to_element_with_offset(canvas, round(x - w / 2), round(y - h / 2))
    return chain


@pytest.mark.parametrize("kind", ["images", "texts", "table"])
def test_look_around(driver, pages, kind):
    open_page(driver, pages[kind])
    state = "return [coterie.map.picked, coterie.map.hovered, coterie.map.marked]"
    # the map has colours on it, once it is drawn
    assert wait(driver, "return new Set(coterie.map.pixels).size > 20")
    # hover shows the row
    hover(driver, 5).perform()
    hovered = driver.execute_script(state)[1]
    assert hovered >= 0
    name = driver.execute_script(
        "const i = arguments[0]; return coterie.data.ids ? coterie.data.ids[i] : String(i)", hovered
    )
    assert find(driver, "#tip").is_displayed() and name in find(driver, "#tip p").text
    if kind == "images":
        sprite = find(driver, "#tip canvas")
        wait(driver, PAINTED, sprite)
    if kind == "texts":
        assert len(find(driver, "#tip q").text) > 20
    # a click on a dot selects its cluster; Esc clears
    hover(driver, 5).click().perform()
    picked = driver.execute_script(state)[0]
    assert f"cluster {picked}" in find(driver, "#status").text
    assert find(driver, f"#cluster-{picked}").get_attribute("class").endswith("on")
    keys(driver, "\ue00c")
    assert driver.execute_script(state)[0] == -1
    # the list selects too
    find(driver, '#list [data-cluster="1"]').click()
    assert driver.execute_script(state)[0] == 1
    # search by name, and by a name that is not there
    box = find(driver, "#row")
    wanted = {"images": "scan-0042.png", "texts": "42", "table": "bottle 42"}[kind]
    box.send_keys(wanted + "\n")
    assert driver.execute_script(state)[2] == 42
    assert wanted in find(driver, "#status").text
    # its nearest rows stand beside, and each leads to its own
    first = find(driver, "#near button")
    neighbour = int(first.get_attribute("data-row"))
    assert neighbour != 42 and len(driver.find_elements("css selector", "#near button")) == 5
    if kind == "images":
        wait(driver, PAINTED, find(driver, "#near canvas"))
    first.click()
    assert driver.execute_script(state)[2] == neighbour
    box.clear()
    box.send_keys("no such row\n")
    assert "No row is called" in find(driver, "#status").text
    # the other map, zoom, keyboard, reset
    find(driver, '[data-map="pca"]').click()
    assert find(driver, '[data-map="pca"]').get_attribute("aria-pressed") == "true"
    driver.execute_script("document.getElementById('map').focus()")
    keys(driver, "+", "\ue014", "n")
    zoom, x = driver.execute_script("return [coterie.map.view.zoom, coterie.map.view.x]")
    assert zoom == pytest.approx(1.4) and x > 0.5
    find(driver, "#reset").click()
    assert driver.execute_script("return coterie.map.view.zoom") == 1
    check_quiet(driver)


def keys(driver, *pressed):
    from selenium.webdriver import ActionChains

    ActionChains(driver, duration=0).send_keys(*pressed).perform()


def wait(driver, script, *args):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 10, 0.05).until(lambda d: d.execute_script(script, *args))


def test_theme(driver, pages):
    paper = "return getComputedStyle(document.body).backgroundColor"
    for scheme, first in (("dark", "rgb(20, 23, 27)"), ("light", "rgb(255, 255, 255)")):
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        open_page(driver, pages["table"])
        assert driver.execute_script(paper) == first
        find(driver, "#theme").click()
        assert driver.execute_script(paper) != first
        # the map follows
        wait(
            driver,
            "const m = coterie.map, p = getComputedStyle(document.body).backgroundColor;"
            "const c = m.context.getImageData(1, 1, 1, 1).data;"
            "return p === `rgb(${c[0]}, ${c[1]}, ${c[2]})`",
        )
    check_quiet(driver)


def test_ways_between_centres(driver, pages):
    open_page(driver, pages["images"])
    sums = (
        "const c = document.getElementById('way'), w = c.width / coterie.data.path_steps;"
        "const s = (x) => c.getContext('2d').getImageData(x, 0, w, c.height).data"
        ".reduce((a, v) => a + v, 0); return c.width > 50 && [s(0), s(c.width - w)]"
    )
    there = wait(driver, sums)
    driver.execute_script(
        "document.getElementById('from').value = '1'; const t = document.getElementById('to');"
        "t.value = '0'; document.getElementById('way').width = 1;"
        "t.dispatchEvent(new Event('change'))"
    )
    assert wait(driver, sums) == there[::-1]
    check_quiet(driver)


@pytest.mark.parametrize("kind", ["images", "texts", "table", "comparison"])
def test_hostile_text_is_shown_and_never_run(driver, pages, kind):
    from selenium.common.exceptions import NoAlertPresentException

    open_page(driver, pages[kind])
    with pytest.raises(NoAlertPresentException):
        driver.switch_to.alert.accept()
    assert ATTACK in driver.execute_script("return document.body.textContent")
    assert driver.execute_script("return document.scripts.length") == 2
    check_quiet(driver)


def test_the_policy_stops_what_should_not_run(driver, pages):
    """The page's own lock works: an injected script, picture or request does nothing."""
    open_page(driver, pages["table"])
    blocked = driver.execute_async_script(
        "const done = arguments[0], seen = [];"
        "document.addEventListener('securitypolicyviolation', (e) => {"
        "  seen.push(e.effectiveDirective); if (seen.length === 3) done(seen); });"
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s);"
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}));"
        "fetch('http://127.0.0.1:9/y').catch(() => 0);"
    )
    assert sorted(blocked) == ["connect-src", "img-src", "script-src-elem"]
    assert driver.execute_script("return window.ran") is None


def test_comparison(driver, pages):
    open_page(driver, pages["comparison"])
    assert driver.execute_script("return coterie.maps.length") == 2
    canvas = find(driver, "#map-0")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    driver.execute_script("coterie.maps[0].on.pick(2)")
    assert driver.execute_script("return coterie.maps.map(m => m.picked)") == [2, 2]
    check_quiet(driver)


@pytest.mark.parametrize("kind", ["images", "texts", "table", "comparison"])
def test_a_phone_needs_no_sideways_scrolling(driver, pages, kind):
    open_page(driver, pages[kind], 390, 844)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    check_quiet(driver)


LONG = (
    "MeanCorpuscularHaemoglobinConcentration",
    "annual_household_expenditure_on_groceries",
    "Blutsenkungsgeschwindigkeit",  # one word
)

# the pieces of a name between places where it may break that stand on more than one line
TORN = """
const torn = [];
for (const cell of document.querySelectorAll(arguments[0]))
  for (const node of cell.childNodes)
    if (node.nodeType === 3) {
      const range = document.createRange();
      for (const found of node.data.matchAll(/\\S+/g)) {
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
        if (lines.size > 1) torn.push(found[0]);
      }
    }
return torn;
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_names_are_not_torn_and_an_empty_cluster_is_small(driver, tmp_path, monkeypatch, width):
    monkeypatch.setattr(maps, "tsne_map", lambda *args: None)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(3, 3)) * 9).repeat(30, 0) + rng.normal(size=(90, 3))
    model = fakes.FakeModel(3).fit(X)
    model.n_clusters = 4  # the last one has no rows
    data = fakes.Dataset(X=X, ids=range(90), kind="table", name="long", columns=list(LONG))
    open_page(driver, reporting.write(tmp_path, model, data), width)
    driver.execute_script("document.body.style.contentVisibility = 'visible'")
    places = ".features td:first-child, .named, .rule b, .rule, .size, .badge, .glance em"
    assert driver.execute_script("return document.querySelectorAll(arguments[0]).length", places)
    assert driver.execute_script(TORN, places) == []
    high = driver.execute_script(
        "return [...document.querySelectorAll('.card')].map((c) => c.offsetHeight)"
    )
    assert len(high) == 4 and high[3] < 0.5 * min(high[:3])


def test_pictures_that_are_not_square_have_no_bars(driver, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "tsne_map", lambda *args: None)
    X = np.full((60, 40, 24), 255, np.uint8)
    X[:30, :20] = 128
    model = fakes.FakeModel(2).fit(X)
    data = fakes.Dataset(X=X, ids=range(60), kind="image", name="tall")
    open_page(driver, reporting.write(tmp_path, model, data))
    boxes = driver.execute_script(
        "return [...document.querySelectorAll('.strip img, .glance img, .what img')].map((i) => {"
        "const s = getComputedStyle(i), b = i.parentElement && getComputedStyle(i.parentElement);"
        "return [i.className, i.closest('.strip') ? i.width / i.height : 0.6, s.objectFit,"
        " s.backgroundColor, b.backgroundColor]; })"
    )
    assert len(boxes) > 10
    for _, ratio, fit, back, behind in boxes:
        assert ratio == pytest.approx(0.6, abs=0.05) and fit == "cover"
        assert "rgb(0, 0, 0)" not in (back, behind)
    hover(driver, 5).perform()
    tip = find(driver, "#tip canvas")
    wait(driver, PAINTED, tip)
    assert driver.execute_script("return [arguments[0].width, arguments[0].height]", tip) == [
        24,
        40,
    ]
    check_quiet(driver)


def test_two_hundred_groups(driver, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "tsne_map", lambda *args: None)
    rng = np.random.default_rng(0)
    z = (rng.normal(size=(200, 8)) * 9).repeat(10, 0) + rng.normal(size=(2000, 8))
    model = fakes.FakeModel(200).fit(z)
    data = fakes.Dataset(X=z, ids=range(2000), kind="vector", name="many")
    open_page(driver, reporting.write(tmp_path, model, data))
    find(driver, '.facts [data-cluster], #list [data-cluster="150"]')
    driver.execute_script("coterie.select(150, true)")
    assert find(driver, "#cluster-150").get_attribute("open") is not None
    assert driver.execute_script("return document.getElementById('list').scrollTop") > 100
    check_quiet(driver)


def test_seventy_thousand_rows(driver, tmp_path, monkeypatch, capsys):
    """The size is a promise; time and frames are printed because they belong to the machine."""
    monkeypatch.setattr(maps, "tsne_map", lambda z, seed, tick: maps.pca_map(z[:, 2:], seed))
    rng = np.random.default_rng(0)
    n, k = 70_000, 10
    labels = rng.integers(0, k, n)
    shapes = rng.integers(0, 255, (k, 4, 4)).astype(np.uint8).repeat(4, 1).repeat(4, 2)
    X = np.minimum(shapes[labels], rng.integers(100, 255, (n, 16, 16), dtype=np.uint8))

    class Model:
        n_clusters, labels_, title = k, labels, "Synthetic"
        z = (rng.normal(size=(k, 6)) * 4)[labels] + rng.normal(size=(n, 6))

        def transform(self, rows):
            return self.z[: len(rows)]

    data = fakes.Dataset(X=X, ids=range(n), kind="image", name="synthetic")
    path = reporting.write(tmp_path, Model(), data)
    megabytes = path.stat().st_size / 1e6
    assert megabytes < 12
    began = time.perf_counter()
    open_page(driver, path)
    opened = time.perf_counter() - began
    draw, frames = driver.execute_async_script(
        "const done = arguments[0], m = coterie.map; let n = 0, spent = 0;"
        "const began = performance.now();"
        "function frame() {"
        "  m.view.x = 0.5 + 0.1 * Math.sin(n / 5); m.view.zoom = 1 + 0.5 * Math.sin(n / 9);"
        "  const t = performance.now(); m.draw(); spent += performance.now() - t;"
        "  if (++n < 60) requestAnimationFrame(frame);"
        "  else done([spent / n, 1000 * n / (performance.now() - began)]); }"
        "requestAnimationFrame(frame);"
    )
    with capsys.disabled():
        print(
            f"\nreport of 70,000 rows: {megabytes:.1f} MB, opens in {opened:.2f} s, "
            f"{frames:.0f} frames/s while panning and zooming ({draw:.1f} ms per drawing)"
        )
    hover(driver, 69_999).perform()
    sprite = find(driver, "#tip canvas")
    wait(driver, PAINTED, sprite)
    check_quiet(driver)
