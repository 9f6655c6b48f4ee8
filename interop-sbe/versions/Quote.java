// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.ticks.VERSION.*;
import org.agrona.concurrent.UnsafeBuffer;

/** The quote that the tests of crates/sbe/codecs write, in one version of its schema. Garage describes how versions are generated. */
final class Quote_VERSION {
    static int write(final UnsafeBuffer buffer) {
        final QuoteEncoder quote = new QuoteEncoder();
        final FrameEncoder frame = new FrameEncoder();
        quote.wrapAndApplyHeader(buffer, 0, frame);
        // These have custom members, which the official codecs do not set.
        frame.magic(0xBEEF).numGroups((short)2);
        frame.numVarDataFields((short)1); // v5
        frame.numVarDataFields((short)2); // v6
        new GroupSizeEncodingEncoder().wrap(buffer, quote.limit()).numGroups(0).numVarDataFields(1);
        quote.time(0x0102030405060708L)
            .price(QuoteEncoder.priceNullValue())
            .putDepth(1.0, -2.0)
            .side(Side.Unknown)
            .gap(QuoteEncoder.gapNullValue());
        quote.marks().clear().open(true).last(true);
        quote.venue(0x0A0B).putLots(0.5, 1e9); // v6
        final QuoteEncoder.LevelsEncoder levels = quote.levelsCount(2);
        levels.next().price(1).size(7);
        levels.orders(2.5f); // v6
        levels.putTag(new byte[] {'a'}, 0, 1);
        levels.next().price(-1).size(7);
        levels.orders(QuoteEncoder.LevelsEncoder.ordersNullValue()); // v6
        levels.putTag(new byte[] {'b', 'c'}, 0, 2);
        final QuoteEncoder.LegsEncoder legs = quote.legsCount(1);
        legs.next().ratio((short)-3);
        legs.weight(0.75); // v6
        quote.putRaw(new byte[] {9, 9, 9}, 0, 3);
        quote.memo("sp\u00e4te"); // v6
        return FrameEncoder.ENCODED_LENGTH + quote.encodedLength();
    }

    static String read(final UnsafeBuffer buffer) {
        final FrameDecoder frame = new FrameDecoder();
        final QuoteDecoder quote = new QuoteDecoder().wrapAndApplyHeader(buffer, 0, frame);
        return "magic=" + frame.magic() + "|" + quote;
    }

    private Quote_VERSION() {
    }
}
