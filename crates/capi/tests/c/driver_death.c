// SPDX-License-Identifier: Apache-2.0
/*
 * Exchanges a message over the driver of the argument, prints "ready", and expects the driver to be killed: each call then fails with
 * DRIVER_LOST, each handler is called once, and none after the close.
 */
#include <stdatomic.h>

#include "check.h"

static atomic_int errors, ends, available, unavailable, calls_after_close;
static atomic_int is_closed;

static void count(atomic_int *counter)
{
    atomic_fetch_add(atomic_load(&is_closed) ? &calls_after_close : counter, 1);
}

static void on_error(void *context, int32_t code, const char *text)
{
    CHECK(context == &errors);
    CHECK(code == TARAN_ERROR_DRIVER_LOST && strstr(text, "driver") != NULL);
    count(&errors);
}

static void on_close(void *context, int32_t code, const char *text)
{
    CHECK(context == &ends);
    CHECK(code == TARAN_ERROR_DRIVER_LOST && strstr(text, "driver") != NULL);
    count(&ends);
}

static void on_available(void *context, const taran_image_t *image)
{
    CHECK(context == &is_closed && image->stream_id == 7 && strcmp(image->source_identity, "aeron:ipc") == 0);
    count(&available);
}

static void on_unavailable(void *context, const taran_image_t *image)
{
    CHECK(context == &is_closed && image->stream_id == 7);
    count(&unavailable);
}

static void on_message(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    CHECK(length == 5 && memcmp(data, "hello", 5) == 0 && header->stream_id == 7);
    *(int *)context += 1;
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 2);
    taran_client_t *client = NULL;
    taran_options_t *options = taran_options_new();
    CHECK(taran_options_set(options, "aeron.dir", arguments[1]) == 0);
    CHECK(taran_options_on_error(options, on_error, &errors) == 0);
    CHECK(taran_options_on_close(options, on_close, &ends) == 0);
    CHECK(taran_client_connect(options, &client) == 0);
    CHECK(taran_options_free(options) == 0);

    taran_image_handlers_t handlers = {on_available, on_unavailable, &is_closed};
    taran_subscription_t *subscription = NULL;
    taran_publication_t *shared = NULL, *exclusive = NULL;
    taran_counter_t *counter = NULL, *closed = NULL;
    CHECK(taran_client_add_subscription(client, "aeron:ipc", 7, &handlers, &subscription) == 0);
    CHECK(taran_client_add_publication(client, "aeron:ipc", 7, &shared) == 0);
    CHECK(taran_client_add_exclusive_publication(client, "aeron:ipc", 7, &exclusive) == 0);
    CHECK(taran_client_add_counter(client, 1001, NULL, 0, "of the test", &counter) == 0);
    CHECK(taran_client_add_counter(client, 1001, NULL, 0, "closed before", &closed) == 0);
    CHECK(taran_counter_close(closed) == 0);
    int received = 0;
    CHECK(taran_publication_offer_for(shared, (const uint8_t *)"hello", 5, 60000000000ULL) > 0);
    AWAIT(taran_subscription_poll(subscription, on_message, &received, 10) >= 0 && received == 1);
    AWAIT(atomic_load(&available) == 2);
    taran_claim_t claim;
    CHECK(taran_publication_try_claim(shared, 4, &claim) > 0);
    printf("ready\n");
    fflush(stdout);

    /* Killed from now on. */
    AWAIT(taran_publication_offer(exclusive, (const uint8_t *)"hello", 5) == TARAN_ERROR_DRIVER_LOST);
    CHECK(strstr(taran_last_error(), "driver") != NULL);
    CHECK(taran_publication_offer(shared, (const uint8_t *)"hello", 5) == TARAN_ERROR_DRIVER_LOST);
    AWAIT(taran_subscription_poll(subscription, on_message, &received, 10) == TARAN_ERROR_DRIVER_LOST);
    int64_t value;
    taran_publication_t *late = NULL;
    CHECK(taran_client_is_closed(client) == 1);
    CHECK(taran_client_read_counter(client, 0, &value) == TARAN_ERROR_DRIVER_LOST);
    CHECK(taran_client_add_publication(client, "aeron:ipc", 8, &late) == TARAN_ERROR_DRIVER_LOST && late == NULL);
    CHECK_ERROR(taran_counter_set(counter, 3), TARAN_ERROR_DRIVER_LOST, "driver");
    CHECK(taran_counter_get(counter, &value) == TARAN_ERROR_DRIVER_LOST);
    CHECK(taran_counter_get(closed, &value) == TARAN_ERROR_CLOSED);
    /* The log is mapped as long as the claim is open. */
    memcpy(claim.data, "late", 4);
    CHECK(taran_claim_commit(&claim) > 0);
    AWAIT(atomic_load(&ends) == 1);

    CHECK(taran_client_close(client) == 0);
    atomic_store(&is_closed, 1);
    CHECK(atomic_load(&errors) == 1 && atomic_load(&available) == 2 && atomic_load(&unavailable) == 2);
    CHECK(taran_client_free(client) == 0);
    CHECK(taran_subscription_free(subscription) == 0);
    CHECK(taran_publication_free(shared) == 0);
    CHECK(taran_publication_free(exclusive) == 0);
    CHECK(taran_counter_free(counter) == 0);
    CHECK(taran_counter_free(closed) == 0);
    CHECK(atomic_load(&calls_after_close) == 0 && atomic_load(&ends) == 1);

    /* The dead driver is told apart from a missing one, and both may come back. */
    options = taran_options_new();
    CHECK(taran_options_set(options, "aeron.dir", arguments[1]) == 0);
    CHECK(taran_options_set(options, "aeron.driver.timeout", "1") == 0);
    client = NULL;
    CHECK(taran_client_connect(options, &client) == TARAN_ERROR_NO_DRIVER && client == NULL);
    CHECK(taran_error_is_retryable(TARAN_ERROR_NO_DRIVER) == 1);
    CHECK(taran_options_free(options) == 0);
    return 0;
}
