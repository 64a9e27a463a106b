"""An executor that ships pickled blocks and states to other processes, and may lose states on the way."""

import pickle
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import numpy as np

from kpod._engine.executors import Executor
from kpod._engine.step import Assign, Loss, Worst


def run(parcel, empty):
    function, item, state = pickle.loads(parcel)
    return pickle.dumps((function(item, state, empty), empty))


class Processes(Executor):
    """Every item in a process that has nothing but what it is sent; results merged as they come."""

    def __init__(self, pool, lost=0.0, seed=0):
        self.pool, self.lost, self.rng = pool, lost, np.random.default_rng(seed)
        self.n_lost = 0

    def accumulate(self, function, items, states, empty):
        if isinstance(function, Assign | Loss | Worst):  # others come after moves, when labels are data
            states = [None if self.rng.random() < self.lost else state for state in states]
        self.n_lost += sum(state is None for state in states)
        order = self.rng.permutation(len(items))
        parcels = {i: pickle.dumps((function, items[i], states[i])) for i in order}
        futures = {self.pool.submit(run, parcels[i], empty()): i for i in order}
        total, after = empty(), {}
        for future in as_completed(futures):
            state, partial = pickle.loads(future.result())
            after[futures[future]] = state
            total.merge(partial)
        return [after[i] for i in range(len(items))], total


def process_pool():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))
