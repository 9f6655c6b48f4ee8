# SPDX-License-Identifier: Apache-2.0
"""Tests of the installed package; `cargo xtask python` runs them with a wheel that it builds."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import taran

EXAMPLES = Path(__file__).parent.parent / "examples"
OPTIONS = {"aeron.ipc.term.buffer.length": "64k"}
IPC = "aeron:ipc"


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits for far longer than it ever takes."""
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0)


class WithDriver(unittest.TestCase):
    def setUp(self) -> None:
        self.driver = taran.Driver.start_embedded(options=OPTIONS)
        self.addCleanup(self.driver.close)
        self.client = taran.connect(self.driver.directory)
        self.addCleanup(self.client.close)


class Surface(WithDriver):
    def connected(self, stream_id: int) -> tuple[taran.Publication, taran.Subscription]:
        subscription = self.client.add_subscription(IPC, stream_id)
        publication = self.client.add_exclusive_publication(IPC, stream_id)
        wait_for(lambda: publication.is_connected and subscription.is_connected)
        return publication, subscription

    def test_message_and_header_arrive(self) -> None:
        publication, subscription = self.connected(1)
        for data in (b"bytes", bytearray(b"bytes"), memoryview(b"bytes")):
            position = publication.offer_for(data, 10)
            received: list[tuple[bytes, taran.Header]] = []
            wait_for(lambda: subscription.poll(lambda *message: received.append(message)) > 0)
            ((message, header),) = received
            self.assertEqual(message, b"bytes")
            self.assertEqual((header.position, header.stream_id), (position, 1))
            self.assertEqual(header.session_id, publication.session_id)
            self.assertEqual(header.flags, 0xC0)
        with self.assertRaises(TypeError):
            publication.offer("text")  # type: ignore[arg-type]
        self.assertEqual(subscription.image_count, 1)
        self.assertGreater(publication.position_limit, publication.position)

    def test_long_message_is_assembled(self) -> None:
        publication, subscription = self.connected(2)
        long = bytes(range(256)) * 30
        received: list[bytes] = []
        publication.offer_for(long, 10)
        wait_for(lambda: subscription.poll_messages(lambda data, _: received.append(data)) > 0 and bool(received))
        self.assertEqual(received, [long])
        publication.offer_for(long, 10)

        def keep(data: bytes, _: taran.Header) -> taran.Action:
            received.append(data)
            return taran.Action.CONTINUE

        wait_for(lambda: subscription.controlled_poll_messages(keep) > 0 and len(received) == 2)
        self.assertEqual(received[1], long)
        with self.assertRaisesRegex(taran.TooLong, "the maximum is 8192"):
            publication.offer(bytes(publication.max_message_length + 1))

    def test_exception_of_handler_is_raised_and_fragment_comes_again(self) -> None:
        publication, subscription = self.connected(3)
        for text in (b"one", b"two", b"three"):
            publication.offer_for(text, 10)
        seen: list[bytes] = []

        def fail_at_two(data: bytes, _: taran.Header) -> None:
            seen.append(data)
            if data == b"two" and seen.count(data) == 1:
                raise ZeroDivisionError("of the test")

        with self.assertRaisesRegex(ZeroDivisionError, "of the test"):
            subscription.poll(fail_at_two)
        self.assertEqual(subscription.poll(fail_at_two), 2)
        self.assertEqual(seen, [b"one", b"two", b"two", b"three"])

        publication.offer_for(b"four", 10)
        with self.assertRaises(ZeroDivisionError):
            subscription.controlled_poll(lambda *_: taran.Action(1 // 0))  # type: ignore[call-arg]
        with self.assertRaises(TypeError):
            subscription.controlled_poll(lambda *_: 7)  # type: ignore[arg-type]
        self.assertEqual(subscription.controlled_poll(lambda *_: taran.Action.ABORT), 0)
        self.assertEqual(subscription.controlled_poll(lambda *_: taran.Action.COMMIT), 1)

    def test_poll_inside_its_handler_is_refused(self) -> None:
        publication, subscription = self.connected(4)
        publication.offer_for(b"message", 10)
        errors: list[Exception] = []

        def nested(*_: object) -> None:
            for call in (lambda: subscription.poll(print), subscription.close):
                try:
                    call()
                except taran.InUse as error:
                    errors.append(error)

        self.assertEqual(subscription.poll(nested), 1)
        self.assertEqual(len(errors), 2)

    def test_claim_is_committed_or_aborted(self) -> None:
        publication, subscription = self.connected(5)
        shared = self.client.add_publication(IPC, 5)
        wait_for(lambda: shared.is_connected and subscription.image_count == 2)
        for claimed in (publication, shared):
            received: list[bytes] = []
            with claimed.try_claim(5) as claim:
                claim.write(b"cl")
                claim.write(b"aim", 2)
                with self.assertRaisesRegex(IndexError, "3 to 6"):
                    claim.write(b"out", 3)
                if claimed is publication:
                    with self.assertRaises(taran.InUse):
                        claimed.offer(b"meanwhile")
                    with self.assertRaises(taran.InUse):
                        claimed.close()
            with self.assertRaises(taran.Closed):
                claim.commit()
            with self.assertRaises(ZeroDivisionError), claimed.try_claim(3):
                raise ZeroDivisionError
            dropped = claimed.try_claim(4)
            del dropped
            claim = claimed.try_claim(0)
            self.assertEqual(claim.commit(), claim.position)
            wait_for(lambda: subscription.poll(lambda data, _: received.append(data)) >= 0 and len(received) == 2)
            self.assertEqual(received, [b"claim", b""])
        with self.assertRaises(taran.TooLong):
            publication.try_claim(publication.max_payload_length + 1)
        self.assertGreater(publication.offer_for(b"usable", 10), 0)

    def test_errors_are_typed(self) -> None:
        publication = self.client.add_publication(IPC, 6)
        with self.assertRaisesRegex(taran.NotConnected, "no subscriber"):
            publication.offer(b"early")
        began = time.monotonic()
        with self.assertRaises(taran.RetryableError):
            publication.offer_for(b"early", 0.2)
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        with self.assertRaisesRegex(taran.Rejected, "tcp"):
            self.client.add_publication("aeron:tcp", 1)
        with self.assertRaisesRegex(taran.NoDriver, "no media driver runs in /taran-no-such"):
            taran.connect("/taran-no-such-directory", driver_timeout=0.001)
        with self.assertRaisesRegex(taran.ConnectFailed, "aeron.driver.timeout"):
            taran.connect(options={"aeron.driver.timeout": "soon"})
        with self.assertRaisesRegex(taran.DriverError, "aeron.term.buffer.length"):
            taran.Driver.start_embedded(options={"aeron.term.buffer.length": "7"})
        with self.assertRaises(ValueError):
            taran.connect(driver_timeout=-1)

    def test_counters(self) -> None:
        with self.client.add_counter(1001, "orders", key=b"key") as counter:
            counter.set(40)
            self.assertEqual(counter.add(2), 40)
            self.assertEqual((counter.get(), self.client.read_counter(counter.id)), (42, 42))
            (found,) = [info for info in self.client.counters() if info.type_id == 1001]
            self.assertEqual((found.id, found.value, found.label), (counter.id, 42, "orders"))
            self.assertTrue(found.key.startswith(b"key\0"))
        with self.assertRaises(taran.Closed):
            counter.get()
        with self.assertRaises(taran.NoSuchCounter):
            self.client.read_counter(-1)

    def test_nothing_is_called_after_close(self) -> None:
        calls: list[str] = []
        subscription = self.client.add_subscription(
            IPC,
            7,
            on_available=lambda image: calls.append(f"available {image.stream_id}"),
            on_unavailable=lambda image: calls.append("unavailable"),
        )
        publication = self.client.add_publication(IPC, 7)
        wait_for(lambda: calls == ["available 7"])
        subscription.close()
        publication.close()
        with self.assertRaises(taran.Closed):
            subscription.poll(print)
        with self.assertRaises(taran.Closed):
            publication.offer(b"late")
        # Each answer of the driver comes after its message about the end of the image.
        self.client.add_counter(1001, "later").close()
        self.assertEqual(calls, ["available 7"])
        with self.client:
            pass
        self.assertTrue(self.client.is_closed)
        with self.assertRaises(taran.Closed):
            self.client.counters()

    def test_handler_cannot_wait_and_its_exception_is_reported(self) -> None:
        refused: list[Exception] = []
        reported: list[object] = []
        before = sys.unraisablehook
        sys.unraisablehook = lambda unraisable: reported.append(unraisable.exc_value)
        self.addCleanup(setattr, sys, "unraisablehook", before)

        def available(_: taran.Image) -> None:
            try:
                self.client.add_counter(1001, "inside")
            except taran.CalledFromHandler as error:
                refused.append(error)
            raise ZeroDivisionError("of the test")

        publication = self.client.add_publication(IPC, 8)
        with self.client.add_subscription(IPC, 8, on_available=available):
            wait_for(lambda: len(reported) == 1)
        publication.close()
        self.assertEqual(len(refused), 1)
        self.assertIsInstance(reported[0], ZeroDivisionError)

    def test_dropping_a_client_while_its_handler_waits_for_the_lock(self) -> None:
        client = taran.connect(self.driver.directory)
        entered = threading.Event()

        def available(_: taran.Image) -> None:
            entered.set()
            time.sleep(0.05)

        subscription = client.add_subscription(IPC, 9, on_available=available)
        publication = client.add_publication(IPC, 9)
        entered.wait(60)
        # Each of these waits for the handler, which needs the interpreter.
        del subscription
        del client
        wait_for(lambda: publication.is_closed)

    def test_lost_driver(self) -> None:
        ends: list[object] = []
        errors: list[object] = []
        client = taran.connect(self.driver.directory, name="test", on_close=ends.append, on_error=errors.append)
        self.assertEqual((client.name, client.directory), ("test", self.driver.directory))
        publication = client.add_publication(IPC, 10)
        counter = client.add_counter(1001, "open")
        closed = client.add_counter(1001, "closed before")
        closed.close()
        self.assertTrue(self.driver.is_running)
        self.driver.close()
        self.assertFalse(self.driver.is_running)
        wait_for(lambda: bool(ends))
        self.assertIsInstance(ends[0], taran.DriverLost)
        self.assertIsInstance(errors[0], taran.DriverLost)
        with self.assertRaises(taran.DriverLost):
            publication.offer(b"late")
        with self.assertRaises(taran.DriverLost):
            counter.get()
        with self.assertRaises(taran.Closed):
            closed.get()
        client.close()
        self.assertEqual(len(ends), 1)


class Processes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="taran-test-python-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.directory = Path(folder.name) / "driver"
        program = (
            "import sys, taran\n"
            "with taran.Driver.start(sys.argv[1], options={'aeron.ipc.term.buffer.length': '64k'}):\n"
            "    print('ready', flush=True)\n"
            "    sys.stdin.read()\n"
        )
        self.driver = subprocess.Popen(
            [sys.executable, "-c", program, str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.driver.stdout is not None
        self.addCleanup(self.driver.stdout.close)
        self.assertEqual(self.driver.stdout.readline(), "ready\n")

    def tearDown(self) -> None:
        assert self.driver.stdin is not None
        self.driver.stdin.close()
        self.driver.wait(60)

    def test_ping_pong(self) -> None:
        environment = os.environ | {"AERON_DIR": str(self.directory)}

        def start(*arguments: str) -> "subprocess.Popen[str]":
            command = [sys.executable, *arguments]
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

        pong = start(str(EXAMPLES / "pong.py"), IPC)
        ping = start(str(EXAMPLES / "ping.py"), "50", IPC)
        times, _ = ping.communicate(timeout=120)
        count, _ = pong.communicate(timeout=120)
        self.assertEqual((ping.returncode, pong.returncode), (0, 0))
        self.assertEqual(count, "100 messages sent back\n")
        self.assertEqual(len(times.splitlines()), 5)
        self.assertTrue(times.startswith("   50 % of round trips within "), times)

    def test_process_outlives_its_killed_driver(self) -> None:
        ends: list[object] = []
        images: list[str] = []
        client = taran.connect(self.directory, on_error=lambda _: None, on_close=ends.append)
        subscription = client.add_subscription(
            IPC,
            1,
            on_available=lambda _: images.append("available"),
            on_unavailable=lambda _: images.append("unavailable"),
        )
        publication = client.add_exclusive_publication(IPC, 1)
        publication.offer_for(b"hello", 30)
        received: list[bytes] = []
        wait_for(lambda: subscription.poll(lambda data, _: received.append(data)) > 0)
        claim = publication.try_claim(4)
        counter = client.add_counter(1001, "orders")
        self.driver.send_signal(signal.SIGKILL)
        wait_for(lambda: bool(ends))
        self.assertIsInstance(ends[0], taran.DriverLost)
        claim.write(b"late")
        claim.commit()
        with self.assertRaises(taran.DriverLost):
            publication.offer(b"late")
        with self.assertRaises(taran.DriverLost):
            subscription.poll(print)
        with self.assertRaises(taran.DriverLost):
            client.add_publication(IPC, 2)
        with self.assertRaises(taran.DriverLost):
            counter.set(3)
        self.assertEqual(images, ["available", "unavailable"])
        client.close()
        self.assertEqual(len(ends), 1)
        with self.assertRaises(taran.NoDriver):
            taran.connect(self.directory, driver_timeout=0.001)


if __name__ == "__main__":
    unittest.main()
