# SPDX-License-Identifier: Apache-2.0
"""Measuring in turns: in each round everybody works once, so that what slows the machine down slows all."""
import dataclasses
import statistics
import time

PAUSE = 0.004  # seconds between turns, in which the threads of the one before stop waiting for work


@dataclasses.dataclass
class Effort:
    rounds: int = 9
    least_rounds: int = 3
    seconds: float = 6.0  # no further round is begun after so long
    turn: float = 0.02    # something quick is repeated for so long in its turn, and counts with its median


QUICK = Effort(rounds=1, least_rounds=1, seconds=0, turn=0.001)


def median_seconds(work, turn):
    """The seconds that work takes: as measure::median_seconds of the program has it."""
    begin = time.perf_counter()
    work()
    spent = time.perf_counter() - begin
    if spent > turn:
        return spent
    seconds = []
    spent = 0
    while spent < turn:
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
        spent += seconds[-1]
    return statistics.median(seconds)


def take_turns(workers, effort):
    """workers: name -> function of the seconds of a turn that returns seconds. Returns name -> {"median", ...}."""
    results = {name: [] for name in workers}
    begin = time.perf_counter()
    for number in range(effort.rounds):
        if number >= effort.least_rounds and time.perf_counter() - begin > effort.seconds:
            break
        for name, turn in workers.items():
            time.sleep(PAUSE)
            results[name].append(turn(effort.turn))
    return {name: {"median": statistics.median(seconds), "best": min(seconds), "rounds": len(seconds)}
            for name, seconds in results.items()}


def worker(work):
    """What take_turns calls: seconds of a turn -> seconds of work."""
    return lambda turn: median_seconds(work, turn)


def quickest(ways, turn):
    """The way that is quickest in three short turns, or one if it takes long; ways: name -> work."""
    seconds = {}
    for name, work in ways.items():
        seconds[name] = median_seconds(work, turn)
        if seconds[name] < 0.3:
            seconds[name] = min(seconds[name], median_seconds(work, turn), median_seconds(work, turn))
    return min(seconds, key=seconds.get)
