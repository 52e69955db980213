"""lam |D w|_1, and the matrices D of differences: along a line, over a graph, or any."""
