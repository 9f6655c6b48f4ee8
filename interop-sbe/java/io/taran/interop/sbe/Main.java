// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

/** Writes messages with the codecs of the official tool, and prints what they read. */
public final class Main {
    /** {@code write WHAT FILE}, {@code read WHAT FILE}, or {@code metadata}. */
    public static void main(final String[] args) throws Exception {
        if ("metadata".equals(args[0])) {
            System.out.println(Metadata.all());
            return;
        }
        final Path file = Path.of(args[2]);
        if ("write".equals(args[0])) {
            final UnsafeBuffer buffer = new UnsafeBuffer(new byte[4096]);
            final byte[] bytes = new byte[write(args[1], buffer)];
            buffer.getBytes(0, bytes);
            Files.write(file, bytes);
        } else {
            System.out.println(read(args[1], new UnsafeBuffer(Files.readAllBytes(file))));
        }
    }

    private static int write(final String what, final UnsafeBuffer buffer) {
        return switch (what) {
            case "garage_v0" -> Garage_v0.write(buffer);
            case "garage_v1" -> Garage_v1.write(buffer);
            case "garage_v2" -> Garage_v2.write(buffer);
            case "album_v0" -> Album_v0.write(buffer);
            case "album_v1" -> Album_v1.write(buffer);
            case "album_v2" -> Album_v2.write(buffer);
            case "music_v0" -> Music_v0.write(buffer);
            case "music_v1" -> Music_v1.write(buffer);
            case "quote_v5" -> Quote_v5.write(buffer);
            case "quote_v6" -> Quote_v6.write(buffer);
            case "book_v5" -> Book_v5.write(buffer);
            case "book_v6" -> Book_v6.write(buffer);
            case "weather_v0" -> Weather_v0.write(buffer);
            case "weather_v1" -> Weather_v1.write(buffer);
            case "calm_v0" -> Weather_v0.writeNone(buffer);
            case "calm_v1" -> Weather_v1.writeNone(buffer);
            default -> throw new IllegalArgumentException(what);
        };
    }

    private static String read(final String what, final UnsafeBuffer buffer) {
        return switch (what) {
            case "garage_v0" -> Garage_v0.read(buffer);
            case "garage_v1" -> Garage_v1.read(buffer);
            case "garage_v2" -> Garage_v2.read(buffer);
            case "album_v0" -> Album_v0.read(buffer);
            case "album_v1" -> Album_v1.read(buffer);
            case "album_v2" -> Album_v2.read(buffer);
            case "music_v0" -> Music_v0.read(buffer);
            case "music_v1" -> Music_v1.read(buffer);
            case "quote_v5" -> Quote_v5.read(buffer);
            case "quote_v6" -> Quote_v6.read(buffer);
            case "book_v5" -> Book_v5.read(buffer);
            case "book_v6" -> Book_v6.read(buffer);
            case "weather_v0" -> Weather_v0.read(buffer);
            case "weather_v1" -> Weather_v1.read(buffer);
            default -> throw new IllegalArgumentException(what);
        };
    }
}
