"""The report that opens in a browser: plans as data, and one page that shows them."""
