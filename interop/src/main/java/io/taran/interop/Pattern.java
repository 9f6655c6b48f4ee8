// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * Contents of messages, so that either side can detect a wrong byte: byte {@code j} of message {@code n} of producer
 * {@code p} is {@code n * 31 + j * 7 + p * 13}, cut to eight bits. With several producers on one publication the first
 * twelve bytes carry {@code p} (i32) and {@code n} (i64) instead. The Rust side has the same rule.
 */
final class Pattern
{
    static final int TAG_LENGTH = 12;

    private Pattern()
    {
    }

    static void fill(
        final MutableDirectBuffer buffer, final int length, final int producer, final long sequence, final boolean tagged)
    {
        if (tagged)
        {
            buffer.putInt(0, producer);
            buffer.putLong(4, sequence);
        }
        for (int j = tagged ? TAG_LENGTH : 0; j < length; j++)
        {
            buffer.putByte(j, expected(producer, sequence, j));
        }
    }

    /** Returns the index of the first wrong byte, or -1. */
    static int mismatch(
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final int producer,
        final long sequence,
        final boolean tagged)
    {
        for (int j = tagged ? TAG_LENGTH : 0; j < length; j++)
        {
            if (buffer.getByte(offset + j) != expected(producer, sequence, j))
            {
                return j;
            }
        }
        return -1;
    }

    private static byte expected(final int producer, final long sequence, final int index)
    {
        return (byte)(sequence * 31 + index * 7L + producer * 13L);
    }
}
