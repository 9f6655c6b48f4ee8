// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.ticks.VERSION.*;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The book that the tests of crates/sbe/codecs write, with groups nested three deep, in one version of its schema. Garage
 * describes how the versions are generated. The official codecs do not set custom fields of header and dimensions.
 */
final class Book_VERSION {
    /** An order: number, price and owner. */
    private record Order(long number, long price, String owner) {
    }

    private static final long NO_PRICE = BookEncoder.VenuesEncoder.SidesEncoder.OrdersEncoder.priceNullValue();

    static int write(final UnsafeBuffer buffer) {
        final FrameEncoder frame = new FrameEncoder();
        final BookEncoder book = new BookEncoder();
        book.wrapAndApplyHeader(buffer, 0, frame);
        frame.magic(0xF00D).numGroups((short)1);
        frame.numVarDataFields((short)1); // v5
        frame.numVarDataFields((short)2); // v6
        book.time(7);
        book.sequence(0x01020304L); // v6
        dimensions(buffer, book, 1);
        final BookEncoder.VenuesEncoder venues = book.venuesCount(3);
        BookEncoder.VenuesEncoder.SidesEncoder sides = venue(venues, 1, 2);
        side(buffer, book, sides, Side.Bid, "bids", new Order(11, 100, "Ada"), new Order(12, NO_PRICE, ""));
        side(buffer, book, sides, Side.Ask, "", new Order(13, 101, "Grace"));
        venues.name("Z\u00fcrich");
        sides = venue(venues, 2, 1);
        side(buffer, book, sides, Side.Ask, "empty");
        venues.name("");
        sides = venue(venues, 3, 3);
        side(buffer, book, sides, Side.Bid, "");
        side(buffer, book, sides, Side.Ask, "asks", new Order(14, -1, "\u00c6"));
        side(buffer, book, sides, Side.Bid, "more", new Order(15, 0, "b"), new Order(16, 1, "c"), new Order(17, 2, "d"));
        venues.name("Oslo");
        book.putSource(new byte[] {1, 2}, 0, 2);
        book.digest("s\u00fc\u00df"); // v6
        return FrameEncoder.ENCODED_LENGTH + book.encodedLength();
    }

    private static BookEncoder.VenuesEncoder.SidesEncoder venue(
        final BookEncoder.VenuesEncoder venues, final int code, final int sides) {
        venues.next().code(code);
        venues.fee(code == 1 ? 0.25f : BookEncoder.VenuesEncoder.feeNullValue()); // v6
        return venues.sidesCount(sides);
    }

    private static void side(final UnsafeBuffer buffer, final BookEncoder book,
        final BookEncoder.VenuesEncoder.SidesEncoder sides, final Side side, final String note, final Order... all) {
        sides.next().side(side);
        sides.total(all.length); // v6
        dimensions(buffer, book, 0);
        final BookEncoder.VenuesEncoder.SidesEncoder.OrdersEncoder orders = sides.ordersCount(all.length);
        for (final Order order : all) {
            orders.next().number(order.number()).price(order.price());
            orders.marks().clear().last(order.number() % 2 == 0); // v6
            orders.owner(order.owner());
        }
        sides.note(note);
    }

    /** Sets the custom fields of the next dimensions. */
    private static void dimensions(final UnsafeBuffer buffer, final BookEncoder book, final int groups) {
        new GroupSizeEncodingEncoder().wrap(buffer, book.limit()).numGroups(groups).numVarDataFields(1);
    }

    static String read(final UnsafeBuffer buffer) {
        final FrameDecoder frame = new FrameDecoder();
        final BookDecoder book = new BookDecoder().wrapAndApplyHeader(buffer, 0, frame);
        return "magic=" + frame.magic() + "|" + book;
    }

    private Book_VERSION() {
    }
}
