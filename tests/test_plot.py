"""Static pictures: each draws what it is given, in colours of the palette, and leaves no trace."""

import subprocess
import sys

import numpy as np
import pytest

import fakes
from coterie import KMeans, plot
from coterie.palette import color


@pytest.fixture(autouse=True)
def closed():
    import matplotlib

    matplotlib.use("Agg", force=True)
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return fakes.FakeSpaces(10).fit(fakes.images().X)


def test_importing_plot_does_not_import_matplotlib():
    code = "import sys, coterie.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_models_plot_themselves():
    X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    X[::2] += 5
    model = KMeans(2, random_state=0).fit(X)
    ax = model.plot(X[:30])
    (dots,) = ax.collections
    assert len(dots.get_offsets()) == 30
    shades = {tuple(shade) for shade in dots.get_facecolors()}
    assert len(shades) == 2 and {t.get_text() for t in ax.texts} == {"0", "1"}
    assert model.plot(X, ax=ax) is ax


def test_embedding_map_keeps_every_row_and_colour():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    ax = plot.embedding_map(rng.normal(size=(60, 5)), labels)
    dots = ax.collections[0]
    assert len(dots.get_offsets()) == 60
    assert len(np.unique(dots.get_facecolors(), axis=0)) == 3
    assert sorted(t.get_text() for t in ax.texts) == ["0", "1", "2"]
    plot.embedding_map(rng.normal(size=(60, 1)), labels)
    with pytest.raises(ValueError, match="60 rows but labels has 3"):
        plot.embedding_map(rng.normal(size=(60, 5)), labels[:3])


def test_pictures_have_the_right_tiles(model):
    h, w = model.shape_
    assert plot.centers_grid(model, columns=4).images[0].get_array().shape == (3 * h, 4 * w)
    assert plot.samples_grid(model, n=6).images[0].get_array().shape == (10 * h, 6 * w)
    ax = plot.interpolation_path(model, [(0, 1), (2, 3)], steps=5)
    assert ax.images[0].get_array().shape == (2 * h, 5 * w)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0 → 1", "2 → 3"]
    assert plot.interpolation_path(model, (0, 1)).images[0].get_array().shape == (h, 9 * w)
    assert plot.traversal(model, [0, 2], steps=4).images[0].get_array().shape == (2 * h, 4 * w)
    X = fakes.images().X
    assert plot.reconstruction_pairs(model, X, n=6).images[0].get_array().shape == (2 * h, 6 * w)
    with pytest.raises(ValueError, match="reshape"):
        plot._tiles([np.zeros((3, 16))])


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_dark_rows_and_what_is_made_of_them_stay_dark(kind):
    class Halves:
        def reconstruct(self, X):
            return X / np.float32(2)  # in the units of the data, as all models do

    X = np.ones((8, 4, 4), kind)
    X[4:] = 200
    picture = plot.reconstruction_pairs(Halves(), X, n=4).images[0].get_array()
    assert picture.max() < 0.01
    picture = plot.reconstruction_pairs(Halves(), X[::-1], n=4).images[0].get_array()
    assert picture[:4].min() > 0.7 and abs(picture[4:] - picture[0, 0] / 2).max() < 0.01


def test_learning_curves_draw_terms_and_phases(model):
    ax = plot.learning_curves(model)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["recon", "kl"]
    recon, kl = (line for line in ax.lines if not line.get_label().startswith("_"))
    assert len(recon.get_xdata()) == 40 and kl.get_xdata()[0] == 21
    assert recon.get_linestyle() != kl.get_linestyle()
    assert "train" in [t.get_text() for t in ax.texts]


def test_heat_map_writes_every_number():
    ax = plot.heat_map(np.array([[1, 2], [3, 40]]), rows=["a", "b"], columns=["c", "d"])
    assert [t.get_text() for t in ax.texts] == ["1", "2", "3", "40"]


def test_decision_surface():
    X = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    model = fakes.FakeModel(3).fit(X)
    ax = plot.decision_surface(model, X, steps=30)
    assert set(np.unique(ax.images[0].get_array())) == {0, 1, 2}
    assert len(ax.collections) == 3
    with pytest.raises(ValueError, match="two columns"):
        plot.decision_surface(model, np.zeros((5, 3)))


def test_bars_show_median_and_spread():
    ax = plot.bars({"dec": [0.5, 0.7, 0.9], "dekm": [0.8]}, ylabel="ACC")
    assert [p.get_height() for p in ax.patches] == [0.7, 0.8]
    ax = plot.bars({"dec": {"usps": [0.5], "mnist": [0.6]}, "dekm": {"usps": [0.7]}})
    assert len(ax.patches) == 3
    assert len({p.get_hatch() for p in ax.patches}) == 2
    from matplotlib.colors import to_rgb

    assert ax.patches[0].get_facecolor()[:3] == to_rgb(color(0))


def test_card_is_small_and_escaped():
    from coterie import DEC

    plain = plot.html_card(DEC(3))
    assert "DEC(n_clusters=3)" in plain and "not fitted" in plain
    hostile = DEC(3)
    hostile.scale = fakes.ATTACK
    assert fakes.ATTACK not in plot.html_card(hostile)
    data = fakes.table()
    fitted = plot.html_card(fakes.FakeModel(3).fit(data.X))
    assert "fitted on 178 rows: 3 of 3 clusters used" in fitted and len(fitted) < 2000


def test_critic_contour():
    class Ring:
        n_clusters = 2

        def critic_values(self, grid):
            return np.linalg.norm(grid, axis=1)

        def sample(self, cluster, n):
            return np.full((n, 2), float(cluster))

    X = np.random.default_rng(0).normal(size=(50, 2))
    ax = plot.critic_contour(Ring(), X, steps=20, n=3)
    real, made = ax.lines
    assert len(real.get_xdata()) == 50
    assert made.get_xdata().tolist() == [0, 0, 0, 1, 1, 1]
    assert ax.collections  # the contour lines
    with pytest.raises(ValueError, match="choose two columns"):
        plot.critic_contour(Ring(), np.zeros((5, 3)))
