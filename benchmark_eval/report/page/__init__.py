"""``report.html``: the tables of a sweep as one page with charts, without network.

``document`` renders the templates, ``tables`` and ``panels`` say what they show, ``rows`` has the
numbers behind the charts. Nothing is computed here but sums, differences and units; nothing at
all in the page's script.
"""
