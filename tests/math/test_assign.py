"""Distances and assignments against their loop-written twins, and their properties."""

import pytest
import torch
from torch.autograd import gradcheck

from coterie.math import assign
from coterie.math.assign import (
    collapsed,
    cosine_distances,
    fuzzy_membership,
    hard,
    kl,
    softmin,
    squared_distances,
    student_t,
    target_distribution,
)
from reference import assign as twin


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


Z, CENTERS = normal(7, 3, seed=1), normal(4, 3, seed=2)
SOFT = normal(7, 4, seed=3).softmax(dim=1)


def close(ours, theirs, tol=1e-10):
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=ours.dtype), rtol=tol, atol=tol)


@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0])
def test_student_t_twin(dof):
    close(student_t(Z, CENTERS, dof), twin.student_t(Z.tolist(), CENTERS.tolist(), dof))


def test_distance_twins():
    close(squared_distances(Z, CENTERS), twin.squared_distances(Z.tolist(), CENTERS.tolist()))
    close(cosine_distances(Z, CENTERS), twin.cosine_distances(Z.tolist(), CENTERS.tolist()))


def test_target_and_kl_twins():
    target = target_distribution(SOFT)
    close(target, twin.target_distribution(SOFT.tolist()))
    close(kl(target, SOFT), twin.kl(target.tolist(), SOFT.tolist()))


@pytest.mark.parametrize("inverse_temperature", [0.1, 3.0, 1000.0])
def test_softmin_twin(inverse_temperature):
    dist = squared_distances(Z, CENTERS)
    close(softmin(dist, inverse_temperature), twin.softmin(dist.tolist(), inverse_temperature))


@pytest.mark.parametrize("fuzzifier", [1.1, 2.0, 5.0])
def test_fuzzy_membership_twin_for_both_kinds_of_distance(fuzzifier):
    squared = squared_distances(Z, CENTERS)
    expected = twin.fuzzy_membership(squared.sqrt().tolist(), fuzzifier)
    close(fuzzy_membership(squared, fuzzifier), expected)
    close(fuzzy_membership(squared.sqrt(), fuzzifier, squared=False), expected)


@pytest.mark.parametrize(
    "function",
    [
        squared_distances,
        cosine_distances,
        student_t,
        lambda z, c: softmin(squared_distances(z, c), 2.0),
        lambda z, c: fuzzy_membership(squared_distances(z, c), 2.0),
        lambda z, c: kl(SOFT, student_t(z, c)),
        lambda z, c: target_distribution(student_t(z, c)),
    ],
)
def test_gradients(function):
    z, centers = Z.clone().requires_grad_(), CENTERS.clone().requires_grad_()
    assert gradcheck(function, (z, centers))


def test_distances_stay_exact_far_from_the_origin():
    z, centers = normal(50, 5, dtype=torch.float32), normal(4, 5, seed=9, dtype=torch.float32)
    z, centers = z + 1000, centers + 1000
    exact = (z.double()[:, None] - centers.double()[None]).square().sum(dim=2)
    ours = squared_distances(z, centers)
    assert ours.min() >= 0
    torch.testing.assert_close(ours.double(), exact, rtol=1e-4, atol=1e-4)


def test_gradient_is_finite_where_a_row_sits_on_a_centre():
    for function in (squared_distances, cosine_distances, student_t):
        z = torch.zeros(2, 3, requires_grad=True)
        centers = torch.zeros(2, 3, requires_grad=True)
        function(z, centers).sum().backward()
        assert z.grad.isfinite().all() and centers.grad.isfinite().all()
    dist = torch.zeros(2, 2, requires_grad=True)
    fuzzy_membership(dist, 1.5)[:, 0].sum().backward()
    assert dist.grad.isfinite().all()


def test_dkm_loss_becomes_the_kmeans_loss_and_never_nan():
    z, centers = 30 * Z.float(), 30 * CENTERS.float()
    dist = squared_distances(z, centers)
    assignment = softmin(dist, 1000.0)
    assert assignment.isfinite().all()
    torch.testing.assert_close(assignment.sum(dim=1), torch.ones(7))
    torch.testing.assert_close((assignment * dist).sum(dim=1), dist.amin(dim=1))
    soft = (softmin(dist, 1e-5) * dist).sum()
    assert soft > 1.1 * dist.amin(dim=1).sum()  # so the equality above is not empty


def test_fuzzy_membership_is_one_hot_at_distance_zero():
    member = fuzzy_membership(torch.tensor([[0.0, 1.0, 4.0]]), 2.0)
    torch.testing.assert_close(member, torch.tensor([[1.0, 0.0, 0.0]]))
    with pytest.raises(ValueError, match=r"fuzzifier=1\.0 .* above 1"):
        fuzzy_membership(member, 1.0)


def test_target_rows_sum_to_one_and_fixed_points_of_dec():
    target = target_distribution(SOFT)
    torch.testing.assert_close(target.sum(dim=1), torch.ones(7, dtype=SOFT.dtype))
    assert not torch.allclose(target, SOFT)
    assert (target.amax(dim=1) > SOFT.amax(dim=1)).float().mean() > 0.5  # it sharpens
    one_hot = torch.eye(4, dtype=SOFT.dtype)[torch.tensor([0, 1, 1, 3, 2])]
    torch.testing.assert_close(target_distribution(one_hot), one_hot)
    same = SOFT[:1].expand(6, 4)
    torch.testing.assert_close(target_distribution(same), same)


def test_target_survives_an_empty_cluster():
    q = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(target_distribution(q), q)
    assert kl(q, torch.tensor([[1.0, 0.0], [0.5, 0.5]])).isfinite()


def test_collapsed_sees_identical_rows_only():
    assert collapsed(SOFT[:1].expand(6, 4))
    assert not collapsed(SOFT)
    assert not collapsed(SOFT[:1])  # one row says nothing


def test_a_collapsed_q_gives_dec_no_gradient():
    z = torch.ones(5, 3, dtype=torch.float64, requires_grad=True)
    q = student_t(z, CENTERS)
    assert collapsed(q)
    kl(target_distribution(q).detach(), q).backward()
    assert z.grad.abs().max() < 1e-12


def test_hard_takes_the_first_of_equal_scores():
    assert hard(torch.tensor([[0.2, 0.5, 0.5], [1.0, 0.0, 0.0]])).tolist() == [1, 0]


def test_no_tensor_of_rows_times_clusters_times_features():
    z, centers = torch.zeros(20_000, 300), torch.zeros(100, 300)  # 2.4 GB if it were built
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if torch.is_tensor(out):
                largest = max(largest, out.numel())
            return out

    with Watch():
        student_t(z, centers)
    assert largest <= z.numel()


def test_blocks_give_what_the_whole_gives(monkeypatch):
    monkeypatch.setattr(assign, "BLOCK_VALUES", 1)  # blocks of 4,096 rows
    draw = torch.Generator().manual_seed(0)
    z, centers = torch.randn(9000, 4, generator=draw), torch.randn(3, 4, generator=draw)
    seen = []

    def q(rows):
        seen.append(len(rows))
        return assign.student_t(rows, centers)

    whole = assign.student_t(z, centers)
    found = assign.in_blocks(q, z, 3)
    assert seen == [4096, 4096, 808]
    torch.testing.assert_close(found, whole)
    sizes = whole.sum(0)
    target = assign.in_blocks(lambda part: assign.target_distribution(part, sizes), found, 3, found)
    assert target is found
    torch.testing.assert_close(target, assign.target_distribution(whole))
    labels = assign.in_blocks(lambda rows: assign.student_t(rows, centers).argmax(1), z, 3)
    assert torch.equal(labels, whole.argmax(1))
