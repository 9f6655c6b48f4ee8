// SPDX-License-Identifier: Apache-2.0
/*
 * Sends each message back to another process, the example ping, until that one has gone.
 *
 * Needs a running driver (`taran driver`). docs/bindings.md says how to compile.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "taran.h"

/* Channels and streams from ping to pong, and of the replies. */
#ifndef PING_CHANNEL
#define PING_CHANNEL "aeron:udp?endpoint=localhost:40126"
#define PONG_CHANNEL "aeron:udp?endpoint=localhost:40127"
#endif
#define PING_STREAM 1001
#define PONG_STREAM 1002

#define SECOND 1000000000ULL

/* Ends the program with the text of the library unless the call succeeded. */
static int64_t check(int64_t result, const char *call)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s (%s)\n", call, taran_last_error(), taran_error_name(result));
        exit(1);
    }
    return result;
}

struct replies {
    taran_publication_t *publication;
    uint64_t count;
};

static void on_message(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    struct replies *replies = context;
    (void)header;
    check(taran_publication_offer_for(replies->publication, data, length, 5 * SECOND), "offer");
    replies->count++;
}

int main(void)
{
    taran_client_t *client;
    taran_subscription_t *subscription;
    struct replies replies = {NULL, 0};

    check(taran_client_connect(NULL, &client), "connect");
    check(taran_client_add_subscription(client, PING_CHANNEL, PING_STREAM, NULL, &subscription), "add subscription");
    check(taran_client_add_exclusive_publication(client, PONG_CHANNEL, PONG_STREAM, &replies.publication),
          "add publication");

    time_t deadline = time(NULL) + 30;
    while (!check(taran_subscription_is_connected(subscription), "subscription")) {
        if (time(NULL) > deadline) {
            fprintf(stderr, "waited 30 s for ping: is it running, with the same driver?\n");
            return 1;
        }
        sched_yield();
    }
    while (check(taran_subscription_is_connected(subscription), "subscription")) {
        if (check(taran_subscription_poll(subscription, on_message, &replies, 10), "poll") == 0) {
            sched_yield();
        }
    }

    printf("%" PRIu64 " messages sent back\n", replies.count);
    taran_publication_free(replies.publication);
    taran_subscription_free(subscription);
    taran_client_free(client);
    return 0;
}
