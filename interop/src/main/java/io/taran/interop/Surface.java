// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.TreeSet;

/** Prints each public method of the official client's classes: METHOD Class.method. */
final class Surface
{
    private static final Class<?>[] CLASSES =
    {
        io.aeron.Aeron.class,
        io.aeron.Aeron.Context.class,
        io.aeron.CommonContext.class,
        io.aeron.Publication.class,
        io.aeron.ConcurrentPublication.class,
        io.aeron.ExclusivePublication.class,
        io.aeron.Subscription.class,
        io.aeron.Image.class,
        io.aeron.Counter.class,
        org.agrona.concurrent.status.AtomicCounter.class,
        org.agrona.concurrent.status.CountersReader.class,
        io.aeron.status.LocalSocketAddressStatus.class,
        io.aeron.status.HeartbeatTimestamp.class,
        io.aeron.status.PublicationErrorFrame.class,
        io.aeron.logbuffer.Header.class,
        io.aeron.logbuffer.BufferClaim.class,
        io.aeron.FragmentAssembler.class,
        io.aeron.ControlledFragmentAssembler.class,
        io.aeron.ImageFragmentAssembler.class,
        io.aeron.ImageControlledFragmentAssembler.class,
        io.aeron.ChannelUri.class,
        io.aeron.ChannelUriStringBuilder.class,
    };

    private Surface()
    {
    }

    static void run()
    {
        final TreeSet<String> names = new TreeSet<>();
        for (final Class<?> type : CLASSES)
        {
            Arrays.stream(type.getDeclaredMethods())
                .filter((method) -> Modifier.isPublic(method.getModifiers()))
                .filter((method) -> !method.isSynthetic())
                .map(Method::getName)
                .forEach((name) -> names.add(name(type) + "." + name));
        }
        names.forEach((name) -> Main.say("METHOD %s", name));
    }

    private static String name(final Class<?> type)
    {
        final Class<?> outer = type.getEnclosingClass();
        return outer == null ? type.getSimpleName() : outer.getSimpleName() + "." + type.getSimpleName();
    }
}
