// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.exceptions.RegistrationException;

/** Adds each of {@code channels} (separated by spaces) and prints the response of the driver: OK, or code and text. */
final class Fails
{
    private Fails()
    {
    }

    static void run(final Args args)
    {
        try (Aeron aeron = args.connect())
        {
            for (final String channel : args.text("channels").split(" "))
            {
                try (AutoCloseable resource = args.flag("subscription") ?
                    aeron.addSubscription(channel, args.stream()) :
                    aeron.addPublication(channel, args.stream()))
                {
                    Main.say("OK %s", channel);
                }
                catch (final RegistrationException ex)
                {
                    Main.say("REFUSED %d %s %s", ex.errorCodeValue(), channel, ex.getMessage().replaceAll("\\s+", " "));
                }
                catch (final Exception ex)
                {
                    Main.say("FAILED %s %s", channel, ex);
                }
            }
        }
    }
}
