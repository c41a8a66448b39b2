"""Training: the loop, its plan, batches, checkpoints, pre-training and the rows it reads."""
