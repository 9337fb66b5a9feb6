"""The batches that `realetc train` trains on, so that other programs can take
the same ones: TrainingLoader (tasks/data/loader.h) of one process, with
RandomOrder (base/shuffle.h) and CombineSeeds (base/random.h)."""

MASK = (1 << 64) - 1
POOL_BATCHES = 16  # data.bucket_batches


def finalize_bits(x):
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def combine_seeds(parts):
    seed = 0
    for part in parts:
        seed = finalize_bits(
            (seed + finalize_bits(part) + 0x9e3779b97f4a7c15) & MASK)
    return seed


def mersenne_twister(seed):
    """The numbers of std::mt19937_64 (Nishimura 2000)."""
    size, middle = 312, 156
    low = (1 << 31) - 1
    state = [seed]
    for i in range(1, size):
        before = state[-1]
        state.append((6364136223846793005 * (before ^ (before >> 62)) + i) &
                     MASK)
    while True:
        for i in range(size):
            x = (state[i] & ~low) | (state[(i + 1) % size] & low)
            state[i] = (state[(i + middle) % size] ^ (x >> 1) ^
                        (0xb5026f5aa96619e9 if x & 1 else 0))
        for x in state:
            x ^= (x >> 29) & 0x5555555555555555
            x ^= (x << 17) & 0x71d67fffeda60000
            x ^= (x << 37) & 0xfff7eee000000000
            yield x ^ (x >> 43)


def random_order(size, seed):
    order = list(range(size))
    draws = mersenne_twister(seed)
    for left in range(size, 1, -1):
        excess = (1 << 64) % left
        draw = next(x for x in draws if x >= excess) % left
        order[left - 1], order[draw] = order[draw], order[left - 1]
    return order


def cut(pool, size, length):
    """Whole batches of a pool by length, without those that fill none, which
    are the last ones of the pool."""
    pool = sorted(pool[:len(pool) // size * size], key=length)
    return [pool[i:i + size] for i in range(0, len(pool), size)]


def batches(records, size, seed, length):
    """Batches of `size` examples without end. `records` are the examples of each
    record, `length(example)` is the number of its tokens."""
    epoch = 0
    while True:
        stream = [(place, i, example)
                  for place, record in enumerate(
                      random_order(len(records), combine_seeds([seed, epoch])))
                  for i, example in enumerate(records[record])]
        for begin in range(0, len(stream), size * POOL_BATCHES):
            pool = stream[begin:begin + size * POOL_BATCHES]
            place, first, _ = pool[0]
            parts = cut([example for _, _, example in pool], size, length)
            for part in random_order(
                    len(parts), combine_seeds([seed, epoch, place, first])):
                yield parts[part]
        epoch += 1
