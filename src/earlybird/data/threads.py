"""Calls of compiled code by several threads, which Ctrl-C can leave."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def begun(function: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function that returns the result of `function`, which a thread computes from now on."""
    found: list[Result] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def result() -> Result:
        thread.join()
        if failed:
            raise failed[0]
        return found[0]

    return result


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the result of each of `items`, computing as many at a time as this process has cores.

    An exception of a call is raised here. An interrupt is raised at once: a call in progress ends with the
    process, where a pool of `concurrent.futures` would wait for it.
    """
    found: dict[int, Result] = {}
    failed: list[BaseException] = []
    left = iter(range(len(items)))

    def work() -> None:
        for k in left:
            try:
                found[k] = function(items[k])
            except BaseException as error:
                failed.append(error)
            if failed:
                return

    number = min(len(os.sched_getaffinity(0)), len(items))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(number)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failed:
        raise failed[0]
    return [found[k] for k in range(len(items))]
