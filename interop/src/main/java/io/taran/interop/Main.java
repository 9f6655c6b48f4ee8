// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

/**
 * Entry point: {@code Main <program> key=value ...}. Every program reports to the test that runs it by lines on standard
 * output, and ends with exit code 0 if it succeeded.
 */
public final class Main
{
    private Main()
    {
    }

    public static void main(final String[] args) throws Exception
    {
        if (args.length == 0)
        {
            throw new IllegalArgumentException("usage: Main <program> key=value ...");
        }
        final Args parsed = Args.parse(args);
        switch (args[0])
        {
            case "publish" -> Publish.run(parsed);
            case "subscribe" -> Subscribe.run(parsed);
            case "echo" -> Echo.run(parsed);
            case "answer" -> Responses.answer(parsed);
            case "ask" -> Responses.ask(parsed);
            case "driver" -> Driver.run(parsed);
            case "archive" -> Archives.run(parsed);
            case "archive-record" -> ArchiveFiles.record(parsed);
            case "archive-check" -> ArchiveFiles.check(parsed);
            case "persist" -> Joining.persist(parsed);
            case "merge" -> Joining.merge(parsed);
            case "counters" -> Inspect.counters(parsed);
            case "errors" -> Inspect.errors(parsed);
            case "alive" -> Inspect.alive(parsed);
            case "terminate" -> Inspect.terminate(parsed);
            case "die" -> Die.run(parsed);
            case "fails" -> Fails.run(parsed);
            case "bench-publish" -> Bench.publish(parsed);
            case "bench-subscribe" -> Bench.subscribe(parsed);
            case "bench-ping" -> Bench.ping(parsed);
            case "bench-pong" -> Bench.pong(parsed);
            case "surface" -> Surface.run();
            case "record" -> Recordings.record(parsed);
            case "refused" -> Recordings.refused(parsed);
            case "replicate" -> Recordings.replicate(parsed);
            case "history" -> History.run(parsed);
            case "authenticate" -> History.authenticate(parsed);
            case "live-publisher" -> StreamEnds.publish(parsed);
            case "live-subscriber" -> StreamEnds.subscribe(parsed);
            case "cluster-golden" -> Golden.cluster();
            case "cluster-echo" -> Clusters.echo(parsed);
            case "cluster-requests" -> Clusters.requests(parsed);
            case "cluster-member" -> Members.run(parsed);
            case "cluster-service" -> Services.run(parsed);
            default -> throw new IllegalArgumentException("unknown program: " + args[0]);
        }
    }

    static void say(final String format, final Object... values)
    {
        System.out.printf(format + "%n", values);
        System.out.flush();
    }

    /** Blocks until the test closes this program's standard input. */
    static void awaitEndOfInput() throws java.io.IOException
    {
        while (System.in.read() >= 0)
        {
            Thread.onSpinWait();
        }
    }
}
