"""Base of the methods that train without an autoencoder."""

from typing import Any, ClassVar

from ..estimator.deep import DeepClusterer


class WithoutAutoencoder(DeepClusterer):
    """What would set an autoencoder is no parameter of these methods."""

    net: ClassVar[Any] = "own"
    channels: ClassVar[Any] = ()
    activation: ClassVar[Any] = ""
    initializer: ClassVar[Any] = ""
    pretrain: ClassVar[Any] = ""
    pretrain_epochs: ClassVar[Any] = 0
    pretrain_lr: ClassVar[Any] = 0
    pretrain_schedule: ClassVar[Any] = ""
    pretrain_optimizer: ClassVar[Any] = ""
    update_every: ClassVar[Any] = 1.0
    tol: ClassVar[Any] = 0.0
    augment: ClassVar[Any] = "none"
    empty: ClassVar[Any] = "keep"
    cache_dir: ClassVar[Any] = None
