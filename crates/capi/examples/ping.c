// SPDX-License-Identifier: Apache-2.0
/*
 * Measures round trips to another process, the example pong, and prints their percentiles.
 *
 * Needs a running driver (`taran driver`); start pong first. docs/bindings.md says how to compile.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taran.h"

/* Channels and streams from ping to pong, and of the replies. */
#ifndef PING_CHANNEL
#define PING_CHANNEL "aeron:udp?endpoint=localhost:40126"
#define PONG_CHANNEL "aeron:udp?endpoint=localhost:40127"
#endif
#define PING_STREAM 1001
#define PONG_STREAM 1002

/* Measured round trips, and those before them. */
#ifndef ROUNDS
#define ROUNDS 100000
#endif
#define WARMUP (ROUNDS < 1000 ? ROUNDS : 1000)

#define SECOND 1000000000ULL

/* Time for one round trip, in seconds. */
#ifndef TIMEOUT
#define TIMEOUT 5
#endif

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Ends the program with the text of the library unless the call succeeded. */
static int64_t check(int64_t result, const char *call)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s (%s)\n", call, taran_last_error(), taran_error_name(result));
        exit(1);
    }
    return result;
}

struct reply {
    uint64_t expected;
    int has_come;
};

static void on_reply(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    struct reply *reply = context;
    (void)header;
    reply->has_come = length == sizeof reply->expected && memcmp(data, &reply->expected, length) == 0;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    static uint64_t times[ROUNDS];
    static const double percentiles[] = {50.0, 90.0, 99.0, 99.9, 100.0};
    taran_client_t *client;
    taran_publication_t *publication;
    taran_subscription_t *subscription;

    check(taran_client_connect(NULL, &client), "connect");
    check(taran_client_add_exclusive_publication(client, PING_CHANNEL, PING_STREAM, &publication), "add publication");
    check(taran_client_add_subscription(client, PONG_CHANNEL, PONG_STREAM, NULL, &subscription), "add subscription");

    /* A reply that comes before the subscription is connected would be lost. */
    uint64_t deadline = now_ns() + 30 * SECOND;
    while (!(check(taran_publication_is_connected(publication), "publication")
             && check(taran_subscription_is_connected(subscription), "subscription"))) {
        if (now_ns() > deadline) {
            fprintf(stderr, "waited 30 s for pong: is it running, with the same driver?\n");
            return 1;
        }
        sched_yield();
    }

    for (uint64_t round = 0; round < WARMUP + ROUNDS; round++) {
        struct reply reply = {round, 0};
        uint64_t sent = now_ns();
        check(taran_publication_offer_for(publication, (const uint8_t *)&round, sizeof round, TIMEOUT * SECOND), "offer");
        while (!reply.has_come) {
            /* Where pong or the driver waits for this processor, spinning would hold them back. */
            if (check(taran_subscription_poll(subscription, on_reply, &reply, 1), "poll") == 0) {
                sched_yield();
            }
            if (now_ns() - sent > TIMEOUT * SECOND) {
                fprintf(stderr, "no reply to message %" PRIu64 " within %d s\n", round, TIMEOUT);
                return 1;
            }
        }
        if (round >= WARMUP) {
            times[round - WARMUP] = now_ns() - sent;
        }
    }

    qsort(times, ROUNDS, sizeof times[0], compare);
    for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
        size_t rank = (size_t)(percentiles[i] / 100.0 * ROUNDS + 0.999999);
        double microseconds = (double)times[rank > 0 ? rank - 1 : 0] / 1e3;
        printf("%5.4g %% of round trips within %.1f us\n", percentiles[i], microseconds);
    }

    taran_subscription_free(subscription);
    taran_publication_free(publication);
    taran_client_free(client);
    return 0;
}
