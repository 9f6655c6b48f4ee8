# SPDX-License-Identifier: Apache-2.0
"""Client of a media driver and embedded driver, in Rust."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import ClassVar, final

__all__ = [
    "Action",
    "AdminAction",
    "BackPressured",
    "CalledFromHandler",
    "Claim",
    "Client",
    "Closed",
    "CommandTimeout",
    "ConnectFailed",
    "Counter",
    "CounterInfo",
    "Damaged",
    "Driver",
    "DriverError",
    "DriverLost",
    "Error",
    "Header",
    "Image",
    "InUse",
    "MaxPositionExceeded",
    "NoDriver",
    "NoSuchCounter",
    "NotConnected",
    "Overloaded",
    "Publication",
    "Rejected",
    "RetryableError",
    "Subscription",
    "TooLong",
    "__version__",
    "connect",
]

__version__: str

class Error(Exception):
    """An operation failed. The text says what is wrong, and what to do."""

class RetryableError(Error):
    """The same call can succeed later without a change."""

class NotConnected(RetryableError):
    """No subscriber is connected. Offer again later."""

class BackPressured(RetryableError):
    """A subscriber, flow control or the driver has to catch up first. Offer again later."""

class AdminAction(RetryableError):
    """The log was rotated to its next term. Offer again at once."""

class NoDriver(RetryableError):
    """No driver runs in the directory, or it has ended. Connect again when one has started."""

class CommandTimeout(RetryableError):
    """The driver did not answer within its timeout. It may have executed the command."""

class Overloaded(RetryableError):
    """The driver has too much to do at present. Repeat the command."""

class Closed(Error):
    """The application closed the object, or its client."""

class MaxPositionExceeded(Error):
    """The stream has used up its position space. Add a new publication."""

class InUse(Error):
    """Another call uses the object, or a claim of the publication is open."""

class TooLong(Error):
    """A message, claim, channel, key or label exceeds its maximum length."""

class ConnectFailed(Error):
    """Connecting failed for a reason that does not pass by itself."""

class DriverLost(Error):
    """The client has lost its driver. Close the client and connect again."""

class Rejected(Error):
    """The driver rejected the command."""

class Damaged(Error):
    """A log or a response of the driver is damaged or does not match."""

class CalledFromHandler(Error):
    """A handler called a function that waits for the driver."""

class DriverError(Error):
    """The embedded driver cannot be started or closed."""

class NoSuchCounter(Error):
    """There is no counter with this id."""

def connect(
    directory: str | PathLike[str] | None = None,
    *,
    name: str | None = None,
    driver_timeout: float | None = None,
    options: Mapping[str, str] | None = None,
    on_error: Callable[[Error], object] | None = None,
    on_close: Callable[[DriverLost | None], object] | None = None,
) -> Client:
    """Connects to a running driver; waits for one for at most `driver_timeout` seconds.

    `options` are properties such as "aeron.client.name". Handlers run on the client's thread, and must not wait for the driver.
    `on_error` receives errors that no call raises; by default they are written to standard error. `on_close` receives the
    reason of a loss, or None after a close.
    """

@final
class Client:
    """A connection to a media driver. Any number of threads may use it. Leaving a `with` block closes it."""

    @property
    def id(self) -> int:
        """The id by which the driver and its tools know the client."""
    @property
    def name(self) -> str: ...
    @property
    def directory(self) -> Path: ...
    @property
    def is_closed(self) -> bool:
        """True if the client was closed or has lost its driver."""
    def add_publication(self, channel: str, stream_id: int) -> Publication:
        """Adds a shared publication, which any number of threads may use. Waits for the driver."""
    def add_exclusive_publication(self, channel: str, stream_id: int) -> Publication:
        """Adds an exclusive publication: a stream with one writer. Waits for the driver."""
    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available: Callable[[Image], object] | None = None,
        on_unavailable: Callable[[Image], object] | None = None,
    ) -> Subscription:
        """Adds a subscription; waits for the driver. The handlers run on the client's thread."""
    def add_counter(self, type_id: int, label: str, *, key: bytes | None = None) -> Counter:
        """Adds a counter; waits for the driver. Types from 1000 on are for applications."""
    def read_counter(self, counter_id: int) -> int:
        """Returns the value of any counter of the driver."""
    def counters(self) -> list[CounterInfo]:
        """Returns all counters of the driver, in the order of their ids."""
    def close(self) -> None:
        """Closes the client and its publications, subscriptions and counters. No handler runs after that."""
    def __enter__(self) -> Client: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Publication:
    """A stream to offer messages to. An exclusive one is used by one thread at a time."""

    def offer(self, data: bytes | bytearray | memoryview) -> int:
        """Copies a message into the stream. Returns the position after it."""
    def offer_for(self, data: bytes | bytearray | memoryview, timeout: float) -> int:
        """Offers again while the error is retryable, for at most `timeout` seconds."""
    def try_claim(self, length: int) -> Claim:
        """Claims space for a message, to be written in place and committed soon: subscribers wait for it."""
    @property
    def is_connected(self) -> bool:
        """True if the stream has a subscriber."""
    @property
    def is_closed(self) -> bool: ...
    @property
    def position(self) -> int:
        """The position of the next message, in bytes."""
    @property
    def position_limit(self) -> int:
        """The position at which back-pressure sets in."""
    @property
    def session_id(self) -> int: ...
    @property
    def max_message_length(self) -> int: ...
    @property
    def max_payload_length(self) -> int:
        """The maximum length of an unfragmented message or a claim, in bytes."""
    def close(self) -> None:
        """Closes the publication. Messages that were offered before are still delivered."""
    def __enter__(self) -> Publication: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Claim:
    """Space for a message. Leaving a `with` block commits it, or aborts it after an exception."""

    @property
    def length(self) -> int: ...
    @property
    def position(self) -> int:
        """The position after the message."""
    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Writes bytes at an offset of the message."""
    def commit(self) -> int:
        """Publishes the message. Returns the position after it."""
    def abort(self) -> None:
        """Gives the claim up; no effect after a commit."""
    def __enter__(self) -> Claim: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...

@final
class Subscription:
    """Streams to receive messages from. One thread at a time uses it.

    An exception of a handler ends the poll and is raised by it. The fragment that it was raised for is not consumed: the next
    poll delivers it again. To consume it, catch the exception in the handler.
    """

    def poll(self, handler: Callable[[bytes, Header], object], fragment_limit: int = 10) -> int:
        """Calls `handler` with fragments. Returns their number."""
    def poll_messages(self, handler: Callable[[bytes, Header], object], fragment_limit: int = 10) -> int:
        """Calls `handler` with whole messages. Returns the number of fragments."""
    def controlled_poll(self, handler: Callable[[bytes, Header], Action], fragment_limit: int = 10) -> int:
        """Calls `handler` with fragments; what it returns says how the poll of the image goes on."""
    def controlled_poll_messages(self, handler: Callable[[bytes, Header], Action], fragment_limit: int = 10) -> int:
        """Like `controlled_poll`, with whole messages."""
    @property
    def is_connected(self) -> bool:
        """True if there is an image."""
    @property
    def is_closed(self) -> bool: ...
    @property
    def image_count(self) -> int: ...
    def close(self) -> None:
        """Closes the subscription. No handler of its images runs after that."""
    def __enter__(self) -> Subscription: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Action:
    """Continuation of a controlled poll after a fragment."""

    ABORT: ClassVar[Action]
    """End the poll of this image. The next poll delivers the fragment again."""
    BREAK: ClassVar[Action]
    """End the poll of this image after this fragment."""
    COMMIT: ClassVar[Action]
    """Tell the publisher at once that this fragment is consumed, and go on."""
    CONTINUE: ClassVar[Action]
    """Go on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __int__(self) -> int: ...

@final
class Header:
    """Fields of the frame of a fragment; of a message, those of its last fragment."""

    @property
    def position(self) -> int:
        """The position in the stream after the fragment."""
    @property
    def reserved_value(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def term_id(self) -> int: ...
    @property
    def term_offset(self) -> int: ...
    @property
    def flags(self) -> int:
        """0x80 for the first fragment of a message, 0x40 for the last."""

@final
class Image:
    """A stream of a publisher, as a subscription sees it."""

    @property
    def correlation_id(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def source_identity(self) -> str:
        """The address of the publisher, or "aeron:ipc"."""

@final
class Counter:
    """A counter of this client. Any number of threads may use it."""

    @property
    def id(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    def get(self) -> int: ...
    def set(self, value: int) -> None: ...
    def add(self, delta: int) -> int:
        """Adds to the value, wrapping around. Returns the value before."""
    def close(self) -> None:
        """Closes the counter: the driver frees it."""
    def __enter__(self) -> Counter: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class CounterInfo:
    """A counter of the driver, when it was read."""

    @property
    def id(self) -> int: ...
    @property
    def type_id(self) -> int: ...
    @property
    def registration_id(self) -> int: ...
    @property
    def owner_id(self) -> int: ...
    @property
    def value(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def key(self) -> bytes: ...

@final
class Driver:
    """A media driver on threads of this process. Leaving a `with` block closes it."""

    @staticmethod
    def start(directory: str | PathLike[str] | None = None, *, options: Mapping[str, str] | None = None) -> Driver:
        """Starts a driver in a directory, or in the default one. `options` are its properties."""
    @staticmethod
    def start_embedded(*, options: Mapping[str, str] | None = None) -> Driver:
        """Starts a driver in a directory of its own, which it deletes when it closes."""
    @property
    def directory(self) -> Path: ...
    @property
    def is_running(self) -> bool:
        """True until the driver is closed or has ended by itself."""
    def close(self) -> None:
        """Closes the driver, and waits for its threads. Its clients lose it."""
    def __enter__(self) -> Driver: ...
    def __exit__(self, *_exception: object) -> None: ...
