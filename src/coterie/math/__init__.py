"""Arithmetic that methods share: assignments, centres, spaces, penalties, augmentation."""
