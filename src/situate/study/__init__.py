"""A study: a file that holds every measurement of a search before its learner sees it.

The file is an SQLite database, see docs/study-format.md. A search that is killed and started again
with the same file asks for the same placements, finds their measurements there, and goes on.
"""

from situate.study.study import Study

__all__ = ["Study"]
