"""CM terms and penalties against their twins, and their properties."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from coterie.math.assign import squared_distances
from coterie.math.cm import cm_terms
from coterie.math.losses import (
    dirichlet_penalty,
    gradient_penalty,
    interpolate_rows,
    orthonormality,
)
from reference import spaces as twin


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


X, MU = normal(6, 3), normal(4, 3, seed=1)
GAMMA = normal(6, 4, seed=2).softmax(dim=1)


def test_cm_terms_twin():
    ours = cm_terms(X, GAMMA, MU)
    assert list(ours) == ["reconstruction", "sparsity", "merge"]
    theirs = twin.cm_terms(X.tolist(), GAMMA.tolist(), MU.tolist())
    torch.testing.assert_close(torch.stack(list(ours.values())), torch.tensor(theirs).double())


def test_cm_terms_add_up_to_fuzzy_kmeans():
    fuzzy = (GAMMA * squared_distances(X, MU)).sum(dim=1).mean()
    torch.testing.assert_close(sum(cm_terms(X, GAMMA, MU).values()), fuzzy)


def test_cm_sparsity_plus_merge_is_not_negative_and_0_for_hard_rows():
    terms = cm_terms(X, GAMMA, MU)
    assert terms["sparsity"] + terms["merge"] > 0
    hard = torch.eye(4, dtype=X.dtype)[torch.arange(6) % 4]
    terms = cm_terms(X, hard, MU)
    assert float(terms["sparsity"]) == float(terms["merge"]) == 0


def test_cm_gradients():
    def total(x, logits, mu):
        return sum(cm_terms(x, logits.softmax(dim=1), mu).values())

    inputs = [x.clone().requires_grad_() for x in (X, normal(6, 4, seed=2), MU)]
    assert gradcheck(total, inputs)


@pytest.mark.parametrize("norm, power", [("l1", 1), ("frobenius", 2)])
def test_orthonormality_twin_and_zero(norm, power):
    ours = orthonormality(MU, norm)
    assert float(ours) == pytest.approx(twin.orthonormality(MU.tolist(), power))
    orthonormal = torch.linalg.qr(normal(5, 5)).Q[:4]
    assert float(orthonormality(orthonormal, norm)) == pytest.approx(0, abs=1e-12)
    assert float(ours) > 0.1  # 4 centres in 3 dimensions can not be orthonormal
    assert gradcheck(lambda c: orthonormality(c, norm), (MU.clone().requires_grad_(),))


def test_orthonormality_names_the_choices():
    with pytest.raises(ValueError, match="'l3' is not"):
        orthonormality(MU, "l3")


def test_dirichlet_twin_for_a_number_and_a_shape():
    shares = GAMMA.mean(dim=0)
    alpha = [5.0, 1.5, 3.0, 1.0]
    ours = dirichlet_penalty(shares, torch.tensor(alpha))
    assert float(ours) == pytest.approx(twin.dirichlet(shares.tolist(), alpha))
    assert float(dirichlet_penalty(shares.flip(0), alpha)) == pytest.approx(float(ours))
    same = twin.dirichlet(shares.tolist(), [7.0] * 4)
    assert float(dirichlet_penalty(shares, 7.0)) == pytest.approx(same)
    assert float(dirichlet_penalty(shares, 1.0)) == 0
    assert gradcheck(lambda s: dirichlet_penalty(s, alpha), (shares.clone().requires_grad_(),))


def test_dirichlet_prefers_equal_shares_and_survives_an_empty_cluster():
    equal = dirichlet_penalty(torch.full((4,), 0.25), 5.0)
    skewed = dirichlet_penalty(torch.tensor([0.7, 0.1, 0.1, 0.1]), 5.0)
    empty = dirichlet_penalty(torch.tensor([1.0, 0.0, 0.0, 0.0]), 5.0)
    assert equal < skewed < empty and empty.isfinite()
    with pytest.raises(ValueError, match="3 values but there are 4 clusters"):
        dirichlet_penalty(torch.full((4,), 0.25), [1.0, 2.0, 3.0])


def test_gradient_penalty_of_a_linear_critic():
    weight = torch.tensor([[3.0, 4.0]], requires_grad=True)
    penalty = gradient_penalty(lambda x: x @ weight.T, torch.randn(5, 2, generator=generator()))
    assert penalty.item() == pytest.approx((5 - 1) ** 2)
    penalty.backward()  # d/dw (|w| - 1)^2 = 2 (|w| - 1) w / |w|
    torch.testing.assert_close(weight.grad, torch.tensor([[4.8, 6.4]]))


def test_gradient_penalty_is_finite_for_a_flat_critic():
    weight = torch.zeros(1, 12, requires_grad=True)
    images = torch.randn(3, 1, 3, 4, generator=generator())
    penalty = gradient_penalty(lambda x: x.flatten(1) @ weight.T, images)
    penalty.backward()
    assert penalty.item() == pytest.approx(1, abs=1e-4)
    assert weight.grad.isfinite().all()


def test_gradient_penalty_second_derivatives():
    def of_weights(weight):
        return gradient_penalty(lambda x: torch.tanh(x @ weight).sum(dim=1), X)

    assert gradcheck(of_weights, (normal(3, 2, seed=4).requires_grad_(),))


def test_ten_outputs_are_a_scaled_critic_with_one():
    head = normal(3, 10, seed=5)
    ten = gradient_penalty(lambda x: torch.tanh(x) @ head, X)
    one = gradient_penalty(lambda x: (torch.tanh(x) @ head).sum(dim=1), X)
    torch.testing.assert_close(ten, one)


def test_interpolated_rows_lie_between():
    real, fake = torch.zeros(3, 1, 2, 2), torch.ones(3, 1, 2, 2)
    rows = interpolate_rows(real, fake, torch.tensor([0.0, 0.25, 1.0]))
    expected = torch.tensor([1.0, 0.75, 0.0]).view(3, 1, 1, 1).expand(3, 1, 2, 2)
    torch.testing.assert_close(rows, expected)
    with pytest.raises(ValueError, match=r"\(3, 1, 2, 2\) but fake has \(2,"):
        interpolate_rows(real, fake[1:], torch.zeros(3))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)
