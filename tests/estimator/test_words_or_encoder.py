"""encoder="auto": words or an encoder, chosen without labels, repeated by predict and by files."""

import numpy as np
import pytest

import coterie
from conftest import quick
from coterie import KMeans
from coterie.cli import main
from coterie.encoders.base import Encoder, EncoderError
from coterie.estimator import words_or_encoder
from coterie.estimator.encoding import chosen_encoder
from coterie.estimator.words_or_encoder import SAMPLE_ROWS, compared, order

TOPICS = ("cat dog mat paw fur tail", "stocks shares market fund bank price", "rain snow wind sun")


def texts(n=90):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(TOPICS[i % 3].split(), 6)) for i in range(n)]


class Topics(Encoder):
    """Tells the topics apart perfectly, or not at all."""

    takes, kept = "text", False

    def __init__(self, clear):
        self.clear, self.reference, self.digest = clear, "topics", f"topics {clear}"

    def embed(self, batch, settings):
        rows = np.zeros((len(batch), 8), np.float32)
        for i, text in enumerate(batch):
            noise = np.random.default_rng([len(text), *text.encode()]).normal(size=8)
            topic = next((j for j, t in enumerate(TOPICS) if set(text.split()) & set(t.split())), 0)
            rows[i] = 0.1 * noise + np.eye(8)[topic] if self.clear else noise
        return rows


@pytest.fixture
def with_encoder(monkeypatch):
    def use(clear):
        encoder = Topics(clear)
        for place in ("words_or_encoder", "encoding"):
            monkeypatch.setattr(f"coterie.estimator.{place}.find", lambda spec: encoder)

    return use


def test_a_blind_encoder_loses_to_words(with_encoder, tmp_path):
    with_encoder(clear=False)
    model = KMeans(3, random_state=0, encoder="auto").fit(texts())
    assert not hasattr(model, "encoding_") and chosen_encoder(model) is None
    assert model.tried_["words"] > model.tried_["encoder"]
    assert (
        "chosen: words" in model.notes_[0] and "encoder='topics' gives the other" in model.notes_[0]
    )
    assert np.array_equal(model.predict(texts()), model.labels_)
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert again.encoder == "auto" and again.tried_ == model.tried_
    assert np.array_equal(again.predict(texts()), model.labels_)


def test_words_that_say_nothing_lose_to_an_encoder(with_encoder, tmp_path):
    with_encoder(clear=True)
    rows = [
        f"{t} {' '.join(f'x{(7 * i + j) % 29}' for j in range(9))}"
        for i, t in enumerate(topic.split()[i % 4] for i, topic in enumerate(TOPICS * 40))
    ]
    model = KMeans(3, random_state=0, encoder="auto").fit(rows)
    assert hasattr(model, "encoding_") and chosen_encoder(model) == "topics"
    assert "chosen: encoder topics" in model.notes_[0] and "encoder=None gives" in model.notes_[0]
    assert np.array_equal(model.predict(rows), model.labels_)
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert again.encoder == "auto"
    assert np.array_equal(again.predict(rows), model.labels_)


def test_all_seeds_and_deep_methods_take_the_same(with_encoder):
    with_encoder(clear=False)
    found = [quick("dec", 3, encoder="auto", random_state=seed).fit(texts()) for seed in (0, 1)]
    assert found[0].tried_ == found[1].tried_
    assert any("were both tried" in note for note in found[0].notes_)


@pytest.mark.parametrize("clear", [True, False])
def test_texts_from_a_file_end_to_end(clear, with_encoder, tmp_path, monkeypatch):
    with_encoder(clear)
    monkeypatch.setattr("coterie.encoders.find.find", lambda spec: Topics(clear))
    worth = {"words": 1.0, "encoder": 2.0 if clear else 0.5, "agreement": 0.5}
    monkeypatch.setattr("coterie.estimator.raw.compared", lambda *given: worth)
    source, run = tmp_path / "texts.txt", tmp_path / "run"
    source.write_text("\n".join(texts()))
    common = ["--method", "kmeans", "--clusters", "3", "--quiet"]
    assert main(["fit", str(source), *common, "--encoder", "auto", "--out", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "were both tried" in page and f"chosen: {'encoder' if clear else 'words'}" in page
    out = tmp_path / "new.csv"
    assert main(["predict", str(run), str(source), "--out", str(out)]) == 0
    column = [
        [line.split(",")[1] for line in p.read_text().splitlines()[1:]]
        for p in (out, run / "labels.csv")
    ]
    assert column[0] == column[1] and len(set(column[0])) == 3
    data, model = coterie.load_data(source), coterie.load(run)
    assert hasattr(model, "encoding_") == clear and model.tried_ == worth
    assert isinstance(data.given_to(model), np.ndarray) == clear
    assert [str(j) for j in model.predict(data)] == column[0]
    assert [str(j) for j in model.predict(texts())] == column[0]


def test_without_the_extra_words_are_taken_and_it_is_said(monkeypatch):
    monkeypatch.setattr("coterie.encoders.find.find_spec", lambda name: None)
    model = KMeans(3, random_state=0, encoder="auto").fit(texts())
    assert not hasattr(model, "encoding_") and not model.tried_
    assert "words alone" in model.notes_[0] and "coterie[text]" in model.notes_[0]
    with pytest.raises(EncoderError, match=r"coterie\[text\]"):  # named: it must be there
        KMeans(3, encoder="auto:text").fit(texts())


def test_rows_that_are_no_texts_are_refused():
    with pytest.raises(EncoderError, match=r"'auto' chooses between the words.*shape \(9, 2\)"):
        KMeans(3, encoder="auto").fit(np.zeros((9, 2)))


def test_few_texts_cannot_be_compared(with_encoder):
    with_encoder(clear=False)
    model = KMeans(3, random_state=0, encoder="auto").fit(texts(30))
    assert hasattr(model, "encoding_") and "too few to compare" in model.notes_[0]
    assert order({}) == ("encoder", "words")


def test_a_sample_is_compared(monkeypatch):
    import scipy.sparse as sp

    seen = []
    monkeypatch.setattr(
        words_or_encoder,
        "compare",
        lambda a, b, k, rng: (seen.append((len(a), len(b), k)), (1, 2), 0)[1:],
    )
    words = sp.random(SAMPLE_ROWS + 50, 30, 0.3, "csr", np.float32, random_state=0)
    vectors = np.random.default_rng(0).normal(size=(SAMPLE_ROWS + 50, 8)).astype(np.float32)
    assert compared(words, vectors, "auto") == {"words": 1, "encoder": 2, "agreement": 0}
    assert seen == [(SAMPLE_ROWS, SAMPLE_ROWS, 10)]
