"""The three data terms of the Clustering Module (CM)."""


def cm_terms(x, gamma, mu):  # (n, d), (n, k), (k, d) -> dict of three scalars
    """Terms E1, E2 and -E3 of CM (eq. 11), summed within a row and averaged over rows.

    For gamma with rows that sum to 1 they add up to ``sum_k gamma_k |x - mu_k|^2``, fuzzy
    k-means; they are kept apart because sparsity + merge is the label-free score that
    chooses among runs.

    Returns
    -------
    dict with
        reconstruction : ``|x - gamma mu|^2``
        sparsity : ``sum_k gamma_k (1 - gamma_k) |mu_k|^2``
        merge : ``-sum_{k != l} gamma_k gamma_l mu_k . mu_l``
    """
    gram = mu @ mu.T
    norms = gram.diagonal()
    crossed = gram - norms.diag()  # k != l only
    return {
        "reconstruction": (x - gamma @ mu).square().sum(dim=1).mean(),
        "sparsity": ((gamma * (1 - gamma)) @ norms).mean(),
        "merge": -(gamma @ crossed * gamma).sum(dim=1).mean(),
    }
