"""`python -m situate`."""

from situate.cli import main

raise SystemExit(main())
