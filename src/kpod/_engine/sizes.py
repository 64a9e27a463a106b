"""Every size at which something changes, and the measurement that chose it.

None of them changes what a result means. Those of starts, samples, rounds, momentum and mini-batches decide
which clustering is found; the size and number of blocks show in last digits; the others only in time and
memory. The benchmarks are those of `python -m benchmarks`; docs/speed-engineering.md has the figures.
"""

from __future__ import annotations

# Observed entries beyond which the starts are tried on a sample of the rows with as many entries, and
# only the best of them goes on with all rows. Ten starts of that size take about a second on two cores
# (`starts`).
LARGE_TABLE = 1_000_000
STARTS = 10

# Entries of the sample that the seeds of one start on all rows are drawn from, and rows of it for each
# cluster at the least: seeds have to be spread
# out, and every row is looked at by the solver anyway (`dense`, the column of losses).
SAMPLE_ENTRIES = 1 << 21
SAMPLE_ROWS_PER_CLUSTER = 64

# Entries of that sample beyond which seeds are drawn from all rows in rounds, wherever these are
# (k-means||), and how many rounds, of how many rows for each cluster: beyond, a sample takes longer to
# seed in one place than all rows in many (`cluster`).
MOST_SAMPLE_ENTRIES = 1 << 27
ROUNDS = 5
ROUND_ROWS_PER_CLUSTER = 2

# Iterations after which centers that still move get momentum. Fits that need fewer gain nothing;
# those that need hundreds save most of them (`dense` at 70 % missing).
CREEP = 20

# A block is work for one thread: long enough that handing it out costs nothing next to it, and
# enough of them that threads finish together (`growth`). From 2 GB on, blocks of 32 MB: however large the
# table, that is what a worker holds of it at least. Never by the number of threads or workers, on which no
# bit may depend.
ENTRIES_PER_BLOCK = 1 << 18
ENOUGH_BLOCKS = 64
MOST_ENTRIES_PER_BLOCK = 1 << 22

# Work, in entries times centers, that is done before a second thread has woken up. A pass that
# compares a row with no center costs as much as comparing it with eight (`small`).
SHORT_WORK = 15_000_000
PASS = 8

# Below this work, starts of a fit take turns on one thread: what they do in Python has to wait for each other
# anyway (results/once/shared-starts.csv). Entries of a few rows, whose labels need no threads and no pass
# for statistics.
LEAST_SHARED_WORK = 800_000
FEW_ENTRIES = 1 << 14

# Chunks of rows that are compared at a time where gaps count: what these take off is a larger table than
# the centers, fetched once for all rows of a chunk (`gap_speed`).
CHUNKS_WITH_GAPS = 4

# Additions in one compiled call: a fraction of a second, so that Ctrl-C is heard between calls.
CALL_WORK = 1 << 30

# Entries of a few columns that are copied at a time when the indicators of categories are looked for.
ENTRIES_AT_ONCE = 1 << 20

# Entries of a dense table up to which its folds are copies without what they hide, in which passes take
# half the time (`choose`); ten of that size are 80 MB.
COPIED_ENTRIES = 1 << 20

# Rows from which the columns' location is estimated, before the first pass over the table.
GLANCE_ROWS = 16

# Bytes of labels or bounds up to which they are on the heap, where what is freed need not be given back
# (`disk`).
SMALL_ROOM = 1 << 16

# On a cluster (`cluster`): bytes that travel with every task rather than as one of their own, results
# that one task merges, and the share of a worker's memory that blocks may take up at a time.
SMALL_PARCEL = 1 << 16
FAN_IN = 8
WORKER_SHARE = 0.4

# Entries of a table on a cluster that is brought here, where a pass over so few takes no longer than telling
# the workers of it.
SMALL_REMOTE_TABLE = LARGE_TABLE

# Rows of a table on a cluster, and at most so many entries, by which choices are made here and probabilities
# fitted: none of these looks at more rows of a table in memory either.
SAMPLED_ROWS = 50_000
SAMPLED_ENTRIES = 1 << 24

# On Spark (`cluster`): bytes of a block, of which its executors hold a few copies while they pack it, and
# partitions whose results one task merges.
SPARK_BLOCK = 1 << 25
SPARK_FAN_IN = 64

# Mini-batches (`minibatch`): starts on the sample that a fit begins with, rows of it, in batches and for
# each cluster, and rows for each cluster between two looks for starved centers.
STARTS_ON_SAMPLE = 3
START_BATCHES = 3
START_ROWS_PER_CLUSTER = 256
ROWS_PER_LOOK = 100

# Entries of the pool of rows that batches are drawn from, which is in memory, and of the stretches of the
# table that it is made of: long enough to be read at once, and some hundreds of them in a pool.
POOL_ENTRIES = 1 << 22
STRETCH_ENTRIES = 1 << 13
