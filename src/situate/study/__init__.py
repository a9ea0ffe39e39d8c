"""A study: a file that holds every measurement of a search before its learner sees it.

The file is an SQLite database, see docs/study-format.md. A killed search that starts again with the
same file proposes the same placements, finds their measurements there, and goes on.
"""

from situate.study.study import Study

__all__ = ["Study"]
