"""Plain methods and neighbour-graph rivals that the deep ones are compared with."""
