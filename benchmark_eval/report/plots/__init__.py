"""One module per family of plots. Each function takes the tables and returns a figure.

Every number in a figure comes from the tables.
"""
