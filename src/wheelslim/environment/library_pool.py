"""Several libraries at a time, so that nothing that was done is forgotten, whatever happens meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from wheelslim.errors import WheelslimError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelslim.environment.library_file import Replaced
    from wheelslim.environment.listing import Candidate


class LibraryPool:
    """Threads that work on libraries; ``finished`` holds every library that was replaced.

    ``stop`` becomes true when no more work is to be begun.
    """

    def __init__(self, jobs: int) -> None:
        """Work on ``jobs`` libraries at a time."""
        self._jobs = jobs
        self.stop = threading.Event()
        self.finished: list[Replaced] = []

    def run(
        self,
        candidates: Sequence[Candidate],
        work: Callable[[Candidate], Replaced | None],
        done: Callable[[Candidate, WheelslimError | None], None],
    ) -> None:
        """Call ``work`` for each in a thread, and ``done`` in this one, with what went wrong.

        No thread works any more when this returns or raises: a signal, or what ``done`` raises.
        """

        def one(candidate: Candidate) -> Replaced | None:
            replaced = work(candidate)
            if replaced is not None:
                self.finished.append(replaced)  # A signal can come to the other thread at any point.
            return replaced

        with ThreadPoolExecutor(self._jobs, "library") as pool:
            try:
                futures = {pool.submit(one, each): each for each in candidates}
                for future in as_completed(futures):
                    failure = None
                    try:
                        future.result()
                    except WheelslimError as error:
                        failure = error
                    done(futures[future], failure)
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
