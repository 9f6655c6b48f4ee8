# SPDX-License-Identifier: Apache-2.0
"""Sends each message back to another process, the example ping, until that one has gone.

Needs a running driver (`taran driver`).
"""

import sys
import time

import taran

# Channels and streams from ping to pong, and of the replies.
PING = ("aeron:udp?endpoint=localhost:40126", 1001)
PONG = ("aeron:udp?endpoint=localhost:40127", 1002)


def run(ping: tuple[str, int], pong: tuple[str, int]) -> int:
    """Returns the number of messages that were sent back."""
    with taran.connect() as client:
        subscription = client.add_subscription(*ping)
        publication = client.add_exclusive_publication(*pong)
        deadline = time.monotonic() + 30
        while not subscription.is_connected:
            if time.monotonic() > deadline:
                raise TimeoutError("waited 30 s for ping: is it running, with the same driver?")
            time.sleep(0)
        count = 0
        while subscription.is_connected:
            polled = subscription.poll(lambda message, _: publication.offer_for(message, 5))
            count += polled
            if polled == 0:
                time.sleep(0)
        return count


def main(arguments: list[str]) -> None:
    """`pong.py [CHANNEL]`: the channel replaces both."""
    ping, pong = PING, PONG
    if arguments:
        ping, pong = (arguments[0], PING[1]), (arguments[0], PONG[1])
    print(f"{run(ping, pong)} messages sent back")


if __name__ == "__main__":
    main(sys.argv[1:])
