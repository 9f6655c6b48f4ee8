# SPDX-License-Identifier: Apache-2.0
"""Measures round trips to another process, the example pong, and prints their percentiles.

Needs a running driver (`taran driver`); start pong first.
"""

import math
import sys
import time

import taran

# Channels and streams from ping to pong, and of the replies.
PING = ("aeron:udp?endpoint=localhost:40126", 1001)
PONG = ("aeron:udp?endpoint=localhost:40127", 1002)

# Round trips before the measured ones, at most.
WARMUP = 1_000


def run(ping: tuple[str, int], pong: tuple[str, int], count: int) -> list[float]:
    """Returns the times of `count` round trips in seconds."""
    with taran.connect() as client:
        publication = client.add_exclusive_publication(*ping)
        subscription = client.add_subscription(*pong)
        # A reply that comes before the subscription is connected would be lost.
        deadline = time.monotonic() + 30
        while not (publication.is_connected and subscription.is_connected):
            if time.monotonic() > deadline:
                raise TimeoutError("waited 30 s for pong: is it running, with the same driver?")
            time.sleep(0)

        times: list[float] = []
        replies: list[bytes] = []
        warmup = min(WARMUP, count)
        for number in range(warmup + count):
            message = number.to_bytes(8, "little")
            sent = time.perf_counter()
            publication.offer_for(message, 5)
            while message not in replies:
                subscription.poll(lambda reply, _: replies.append(reply), 1)
                if time.perf_counter() - sent > 5:
                    raise TimeoutError(f"no reply to message {number} within 5 s")
            replies.clear()
            if number >= warmup:
                times.append(time.perf_counter() - sent)
        return times


def main(arguments: list[str]) -> None:
    """`ping.py [COUNT [CHANNEL]]`: the channel replaces both."""
    count = int(arguments[0]) if arguments else 100_000
    ping, pong = PING, PONG
    if len(arguments) > 1:
        ping, pong = (arguments[1], PING[1]), (arguments[1], PONG[1])
    times = sorted(run(ping, pong, count))
    for percentile in (50, 90, 99, 99.9, 100):
        rank = max(1, math.ceil(percentile / 100 * len(times)))
        print(f"{percentile:>5} % of round trips within {times[rank - 1] * 1e6:.1f} us")


if __name__ == "__main__":
    main(sys.argv[1:])
