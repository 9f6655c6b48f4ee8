// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;

import java.util.concurrent.atomic.AtomicBoolean;

/** Sends back, on {@code reply}, every message of {@code channel}, until standard input is closed. */
final class Echo
{
    private Echo()
    {
    }

    static void run(final Args args) throws Exception
    {
        final AtomicBoolean running = new AtomicBoolean(true);
        final Thread input = new Thread(() ->
        {
            try
            {
                Main.awaitEndOfInput();
            }
            catch (final java.io.IOException ignore)
            {
                // A closed pipe is an end of input, too.
            }
            running.set(false);
        });
        input.setDaemon(true);
        input.start();
        try (Aeron aeron = args.connect();
            Subscription subscription = aeron.addSubscription(args.text("channel"), args.stream());
            ExclusivePublication publication =
                aeron.addExclusivePublication(args.text("reply"), (int)args.number("reply-stream", 1002)))
        {
            Main.say("READY");
            final BufferClaim claim = new BufferClaim();
            final FragmentHandler handler = (buffer, offset, length, header) ->
            {
                while (running.get())
                {
                    final long result = publication.tryClaim(length, claim);
                    if (result > 0)
                    {
                        claim.buffer().putBytes(claim.offset(), buffer, offset, length);
                        claim.commit();
                        return;
                    }
                    if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
                    {
                        throw new IllegalStateException("tryClaim returned " + result);
                    }
                    Thread.onSpinWait();
                }
            };
            while (running.get())
            {
                if (subscription.poll(handler, 10) == 0)
                {
                    Thread.onSpinWait();
                }
            }
        }
    }
}
