"""Pretrained encoders: rows (texts, images, anything) -> vectors, computed once and kept."""
