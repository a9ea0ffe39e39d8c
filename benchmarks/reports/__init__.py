"""Reports for the browser and the documentation site, as Chromium shows them."""
