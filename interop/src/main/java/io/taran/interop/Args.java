// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ErrorCode;
import io.aeron.exceptions.RegistrationException;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/** The {@code key=value} arguments of a program. Channels contain '=', so only the first one separates. */
final class Args
{
    private final Map<String, String> values = new HashMap<>();

    static Args parse(final String[] args)
    {
        final Args parsed = new Args();
        for (final String arg : Arrays.copyOfRange(args, 1, args.length))
        {
            final int equals = arg.indexOf('=');
            if (equals < 1)
            {
                throw new IllegalArgumentException("not key=value: " + arg);
            }
            parsed.values.put(arg.substring(0, equals), arg.substring(equals + 1));
        }
        return parsed;
    }

    String text(final String key)
    {
        final String value = values.get(key);
        if (value == null)
        {
            throw new IllegalArgumentException("missing argument: " + key);
        }
        return value;
    }

    String text(final String key, final String fallback)
    {
        return values.getOrDefault(key, fallback);
    }

    long number(final String key, final long fallback)
    {
        final String value = values.get(key);
        return value == null ? fallback : Long.parseLong(value);
    }

    boolean flag(final String key)
    {
        return Boolean.parseBoolean(values.getOrDefault(key, "false"));
    }

    /** Message lengths, used cyclically. */
    int[] lengths()
    {
        return Arrays.stream(text("lengths", "64").split(",")).mapToInt(Integer::parseInt).toArray();
    }

    int stream()
    {
        return (int)number("stream", 1001);
    }

    /** Deadline of a program on the clock of {@link System#nanoTime()}. */
    long deadline()
    {
        return System.nanoTime() + number("timeout", 60) * 1_000_000_000L;
    }

    Aeron connect()
    {
        return Aeron.connect(new Aeron.Context().aeronDirectoryName(text("dir")));
    }

    /** Sends a request to the driver, and repeats it while a resource that was just closed is still being released. */
    <T> T again(final Supplier<T> request) throws InterruptedException
    {
        final long deadline = deadline();
        while (true)
        {
            try
            {
                return request.get();
            }
            catch (final RegistrationException rejected)
            {
                if (rejected.errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE || System.nanoTime() > deadline)
                {
                    throw rejected;
                }
            }
            Thread.sleep(1);
        }
    }
}
