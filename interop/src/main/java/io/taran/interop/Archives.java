// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.security.Authenticator;
import io.aeron.security.SessionProxy;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Official archives. */
final class Archives
{
    private Archives()
    {
    }

    /**
     * The official archive in {@code archive-dir}, beside the driver in {@code dir}, or with a driver of its own there if
     * {@code driver=true}; the archive has {@code threading=SHARED} unless told otherwise. Its other settings come as
     * {@code -Daeron...} properties. With {@code auth=challenge} it
     * challenges clients whose credentials are "me", and rejects others. Says READY, ends when standard input is closed.
     */
    static void run(final Args args) throws Exception
    {
        final Archive.Context archive = new Archive.Context()
            .aeronDirectoryName(args.text("dir"))
            .archiveDir(new File(args.text("archive-dir")))
            .threadingMode(ArchiveThreadingMode.valueOf(args.text("threading", "SHARED")));
        if ("challenge".equals(args.text("auth", "none")))
        {
            archive.authenticatorSupplier(Challenging::new);
        }
        if (args.flag("driver"))
        {
            final MediaDriver.Context driver = new MediaDriver.Context()
                .aeronDirectoryName(args.text("dir"))
                .threadingMode(ThreadingMode.SHARED)
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true);
            try (ArchivingMediaDriver both = ArchivingMediaDriver.launch(driver, archive))
            {
                Main.say("READY id=%d", both.archive().context().archiveId());
                Main.awaitEndOfInput();
            }
        }
        else
        {
            try (Archive alone = Archive.launch(archive))
            {
                Main.say("READY id=%d", alone.context().archiveId());
                Main.awaitEndOfInput();
            }
        }
        Main.say("CLOSED");
    }

    /** Challenges with "abc", and expects its reverse. */
    private static final class Challenging implements Authenticator
    {
        public void onConnectRequest(final long session, final byte[] credentials, final long nowMs)
        {
            accepted = Arrays.equals("me".getBytes(StandardCharsets.US_ASCII), credentials);
            answered = false;
        }

        public void onChallengeResponse(final long session, final byte[] credentials, final long nowMs)
        {
            answered = Arrays.equals("cba".getBytes(StandardCharsets.US_ASCII), credentials);
            accepted = answered;
        }

        public void onConnectedSession(final SessionProxy proxy, final long nowMs)
        {
            if (accepted)
            {
                proxy.challenge("abc".getBytes(StandardCharsets.US_ASCII));
            }
            else
            {
                proxy.reject();
            }
        }

        public void onChallengedSession(final SessionProxy proxy, final long nowMs)
        {
            if (answered)
            {
                proxy.authenticate("me".getBytes(StandardCharsets.US_ASCII));
            }
            else if (!accepted)
            {
                proxy.reject();
            }
        }

        private boolean accepted;
        private boolean answered;
    }
}
