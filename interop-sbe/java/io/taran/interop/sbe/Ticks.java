package io.taran.interop.sbe;

import io.taran.ticks.*;
import org.agrona.concurrent.UnsafeBuffer;

/** The quote that the tests of crates/sbe/codecs write. */
final class Ticks {
    static int write(final UnsafeBuffer buffer) {
        final QuoteEncoder quote = new QuoteEncoder();
        final FrameEncoder frame = new FrameEncoder();
        quote.wrapAndApplyHeader(buffer, 0, frame);
        // Those have members of their own, which the official codecs leave to whoever uses them.
        frame.magic(0xBEEF).numGroups((short)2).numVarDataFields((short)1);
        new GroupSizeEncodingEncoder()
            .wrap(buffer, FrameEncoder.ENCODED_LENGTH + QuoteEncoder.BLOCK_LENGTH)
            .numGroups(0)
            .numVarDataFields(1);
        quote.time(0x0102030405060708L)
            .price(QuoteEncoder.priceNullValue())
            .putDepth(1.0, -2.0)
            .side(Side.Unknown)
            .gap(QuoteEncoder.gapNullValue());
        quote.marks().clear().open(true).last(true);
        final QuoteEncoder.LevelsEncoder levels = quote.levelsCount(2);
        levels.next().price(1).size(7).putTag(new byte[] {'a'}, 0, 1);
        levels.next().price(-1).size(7).putTag(new byte[] {'b', 'c'}, 0, 2);
        quote.legsCount(1).next().ratio((short)-3);
        quote.putRaw(new byte[] {9, 9, 9}, 0, 3);
        return FrameEncoder.ENCODED_LENGTH + quote.encodedLength();
    }

    static String read(final UnsafeBuffer buffer) {
        final FrameDecoder frame = new FrameDecoder();
        final QuoteDecoder quote = new QuoteDecoder().wrapAndApplyHeader(buffer, 0, frame);
        return "magic=" + frame.magic() + "|" + quote;
    }

    private Ticks() {
    }
}
