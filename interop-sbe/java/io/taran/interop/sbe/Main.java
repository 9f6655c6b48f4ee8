package io.taran.interop.sbe;

import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

/** Writes messages with the codecs of the official tool, and tells what they read. */
public final class Main {
    /** {@code write WHAT FILE}, or {@code read WHAT FILE}. */
    public static void main(final String[] args) throws Exception {
        final Path file = Path.of(args[2]);
        if ("write".equals(args[0])) {
            final UnsafeBuffer buffer = new UnsafeBuffer(new byte[4096]);
            final int length = switch (args[1]) {
                case "garage_v0" -> Garage_v0.write(buffer);
                case "garage_v1" -> Garage_v1.write(buffer);
                case "garage_v2" -> Garage_v2.write(buffer);
                case "ticks" -> Ticks.write(buffer);
                default -> throw new IllegalArgumentException(args[1]);
            };
            final byte[] bytes = new byte[length];
            buffer.getBytes(0, bytes);
            Files.write(file, bytes);
        } else {
            final UnsafeBuffer buffer = new UnsafeBuffer(Files.readAllBytes(file));
            System.out.println(switch (args[1]) {
                case "garage_v0" -> Garage_v0.read(buffer);
                case "garage_v1" -> Garage_v1.read(buffer);
                case "garage_v2" -> Garage_v2.read(buffer);
                case "ticks" -> Ticks.read(buffer);
                default -> throw new IllegalArgumentException(args[1]);
            });
        }
    }
}
