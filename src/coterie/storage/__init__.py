"""Files: atomic writes, tensors and models, run folders."""
