"""Fits in processes of their own, so that a call into a library that does not return can be ended.

A `Worker` is forked from the process that holds the data, which it shares and never copies. It is kept for the next
fit of its package, unless that package compiles when called: then every fit gets a fresh one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import Data
from benchmarks.entrant import Peer, Task
from benchmarks.objectives import task_of

#: Seconds that a worker may take to import its package and to warm up.
READY = 120.0
#: The failure of a fit that was ended; its seconds are then those that it was given.
OVER = "over the limit"
#: Where the processor's time is limited, the wall's is too: at this many times as much, for a fit that only waits.
BUSY = 20.0
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """One fit: its seconds, by the clock on the wall and of the processor, and its weights or why there are none."""

    seconds: float
    cpu: float
    w: np.ndarray | None = None
    failure: str | None = None


class Worker:
    """A process that fits what it is sent, in order."""

    def __init__(self, peers: Mapping[str, Peer], data: Data, threads: int) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, peers, data, threads), daemon=True)
        with warnings.catch_warnings():  # a fork of a process that has threads: ours are idle
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()

    def fit(self, peer: Peer, loss: str, lam: float, tol: float, limit: float, clock: str = "wall") -> Run:
        """Fit within a time limit, by the clock "wall" or "cpu"; past it, the worker ends and cannot be used again."""
        by_processor = clock == "cpu"
        try:
            self._pipe.send((peer.name, loss, lam, tol, limit if by_processor else 0.0))
            if not self._pipe.poll(READY):
                raise EOFError("it was not ready in time")
            failure = self._pipe.recv()
            if failure is not None:
                return Run(np.inf, np.inf, failure=failure)
            if not self._pipe.poll(BUSY * limit if by_processor else limit):
                self.stop()
                return Run(limit, limit, failure=OVER)
            return self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join(timeout=1.0)
            if self._process.exitcode == -signal.SIGPROF:
                return Run(limit, limit, failure=OVER)
            self.stop()
            return Run(np.inf, np.inf, failure=f"its process ended: {error}")

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def stop(self) -> None:
        """End this process, and only this one."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


class Workers:
    """One worker a package, made when it is needed."""

    def __init__(self, peers: Iterable[Peer], data: Data, threads: int) -> None:
        named = {peer.name: peer for peer in peers}  # a fit cannot be sent, its name can
        self._make = lambda: Worker(named, data, threads)
        self._kept: dict[str, Worker] = {}

    def fit(self, peer: Peer, loss: str, lam: float, tol: float, limit: float, clock: str = "wall") -> Run:
        worker = self._kept.pop(peer.package, None) or self._make()
        run = worker.fit(peer, loss, lam, tol, limit, clock)
        if not worker.alive:
            return run
        if peer.compiles:
            worker.stop()
        else:
            self._kept[peer.package] = worker
        return run

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._kept.values():
            worker.stop()


def _leave_with(parent: int) -> None:
    """End this process when its parent has ended, also in the middle of a fit."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _serve(pipe: Connection, peers: Mapping[str, Peer], data: Data, threads: int) -> None:
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)
    warnings.simplefilter("ignore")
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # libraries print from C too
        os.dup2(silence, stream)
    warmed: set[tuple[str, str]] = set()
    while True:
        try:
            name, loss, lam, tol, processor_limit = pipe.recv()
        except EOFError:
            return
        peer = peers[name]
        task = task_of(data, loss, lam, tol, threads)
        try:
            for module in peer.imports:
                importlib.import_module(module)
            if not peer.compiles and (name, loss) not in warmed:
                _warm(peer, task)
                warmed.add((name, loss))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")
            continue
        pipe.send(None)
        signal.setitimer(signal.ITIMER_PROF, processor_limit)  # its signal ends the process; 0 is no limit
        run = _timed(peer, task)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        pipe.send(run)


def _warm(peer: Peer, task: Task) -> None:
    """A fit of a few rows: imports and first calls are not what is raced. What a package compiles is."""
    y = task.y
    rows = np.sort(np.concatenate([np.flatnonzero(y == label)[:20] for label in np.unique(y)[:2]]))
    peer.fit(replace(task, X=task.X[rows], y=y[rows], tol=peer.ladder[0]))


def _processor_time() -> float:
    """Of all threads of this process. Where a timer limits it, time.process_time goes in steps of 4 ms on Linux."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _timed(peer: Peer, task: Task) -> Run:
    try:
        with threadpool_limits(task.threads):
            start, start_cpu = time.perf_counter(), _processor_time()
            w = peer.fit(task)
            seconds, cpu = time.perf_counter() - start, _processor_time() - start_cpu
        return Run(seconds, cpu, np.ravel(np.asarray(w, dtype=np.float64)))
    except Exception as error:
        return Run(np.inf, np.inf, failure=f"{type(error).__name__}: {error}")
