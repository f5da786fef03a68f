"""Turns, medians and ratios."""

from statistics import median


def take_turns(rounds, sides):
    """Runs every side once a round, A B A B ..., so that whatever else the machine does meets all of them. `sides` is
    {name: function without arguments}; a function that returns None takes no more turns. Gives {name: [results]}."""
    results = {name: [] for name in sides}
    out = set()
    for _ in range(rounds):
        for name, side in sides.items():
            if name in out:
                continue
            result = side()
            if result is None:
                out.add(name)
            else:
                results[name].append(result)
    return results


def middle(samples, key):
    return median(sample[key] for sample in samples)


def paired_ratio(ours, theirs, key):
    """Median of the ratios of the runs that stood side by side."""
    return median(a[key] / b[key] for a, b in zip(ours, theirs))
