"""One module a family of plots. Each function takes the tables and returns a figure.

Nothing is computed in here: a number that is drawn stands in a table.
"""
