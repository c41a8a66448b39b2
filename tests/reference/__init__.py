"""Slow twins of the formulas in coterie.parts, written as plain loops from the papers.

They share no code with the package. Rows are lists of floats.
"""
