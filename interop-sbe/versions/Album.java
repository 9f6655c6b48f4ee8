// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.garage.VERSION.*;
import org.agrona.concurrent.UnsafeBuffer;

/** An album, with one group more in the last version of its schema. Garage describes how the versions are generated. */
final class Album_VERSION {
    static int write(final UnsafeBuffer buffer) {
        final AlbumEncoder album = new AlbumEncoder();
        album.wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder());
        album.number((short)3);
        album.pagesCount(2).next().width(100).next().width(200);
        album.photosCount(3).next().width(7).next().width(8).next().width(9); // v2
        return MessageHeaderEncoder.ENCODED_LENGTH + album.encodedLength();
    }

    static String read(final UnsafeBuffer buffer) {
        return new AlbumDecoder().wrapAndApplyHeader(buffer, 0, new MessageHeaderDecoder()).toString();
    }

    private Album_VERSION() {
    }
}
