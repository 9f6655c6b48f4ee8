// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;

/**
 * The official Java driver in {@code dir}; its other settings are {@code -Daeron...} properties. Prints READY; ends
 * when standard input is closed.
 */
final class Driver
{
    private Driver()
    {
    }

    static void run(final Args args) throws Exception
    {
        final MediaDriver.Context context = new MediaDriver.Context()
            .aeronDirectoryName(args.text("dir"))
            .threadingMode(ThreadingMode.valueOf(args.text("threading", "SHARED")))
            .dirDeleteOnStart(Boolean.parseBoolean(args.text("delete-on-start", "true")))
            .dirDeleteOnShutdown(true);
        try (MediaDriver driver = MediaDriver.launch(context))
        {
            Main.say("READY dir=%s", driver.aeronDirectoryName());
            Main.awaitEndOfInput();
        }
        Main.say("CLOSED");
    }
}
