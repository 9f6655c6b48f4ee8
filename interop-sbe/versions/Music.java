// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.music.VERSION.*;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The disc that the tests of crates/sbe/codecs write, in one version of its schema. Garage describes how the versions are
 * generated. The official codecs do not set custom fields of header and dimensions.
 */
final class Music_VERSION {
    static int write(final UnsafeBuffer buffer) {
        final LabelEncoder label = new LabelEncoder();
        final DiscEncoder disc = new DiscEncoder();
        disc.wrapAndApplyHeader(buffer, 0, label);
        label.sender(77).hops(LabelEncoder.hopsNullValue());
        disc.year(1993).genre(Genre.Pop).artist("Bj\u00f6rk");
        final ListingEncoder listing = new ListingEncoder();
        listing.wrap(buffer, disc.limit()).first((short)3);
        final DiscEncoder.TracksEncoder tracks = disc.tracksCount(2);
        tracks.next().seconds(245).next().seconds(254);
        listing.wrap(buffer, disc.limit()).first(ListingEncoder.firstNullValue());
        final DiscEncoder.SidesEncoder sides = disc.sidesCount(2);
        sides.next().print("C\u00f4t\u00e9 A");
        sides.next().print("");
        listing.wrap(buffer, disc.limit()).first((short)9); // v1
        disc.bonusCount(1).next().seconds(12); // v1
        disc.note("\u00fcbrig"); // v1
        return LabelEncoder.ENCODED_LENGTH + disc.encodedLength();
    }

    static String read(final UnsafeBuffer buffer) {
        final LabelDecoder label = new LabelDecoder();
        final DiscDecoder disc = new DiscDecoder().wrapAndApplyHeader(buffer, 0, label);
        final StringBuilder firsts = new StringBuilder();
        final ListingDecoder listing = new ListingDecoder();
        firsts.append(listing.wrap(buffer, disc.limit()).first());
        disc.tracks().forEach(track -> track.seconds());
        firsts.append(',').append(listing.wrap(buffer, disc.limit()).first());
        disc.sides().forEach(side -> side.print());
        return "label=" + label.sender() + "," + label.hops() + "|firsts=" + firsts
            + "|kind=" + disc.kind() + "|style=" + disc.style() + "|artist=" + disc.artist() + "|" + disc;
    }

    private Music_VERSION() {
    }
}
