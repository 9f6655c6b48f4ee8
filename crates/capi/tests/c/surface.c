// SPDX-License-Identifier: Apache-2.0
/* Each function of the header, as it is meant to be used and as it is not, with a driver of its own. */
#include "check.h"

#define OFFER(publication, text) taran_publication_offer((publication), (const uint8_t *)(text), strlen(text))
#define SOON 60000000000ULL

static taran_subscription_t *subscription;
static char last[200000];
static size_t last_length;
static int32_t action;

static void on_message(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    CHECK(length <= sizeof last && header->position > 0 && (header->flags & 0x40));
    memcpy(last, data, length);
    last_length = length;
    *(int *)context += 1;
}

static void on_fragment(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    (void)data;
    (void)header;
    CHECK(length > 0);
    *(int *)context += 1;
}

/* The poll that runs a handler uses the subscription. */
static void nested(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    (void)data, (void)length, (void)header;
    CHECK_ERROR(taran_subscription_poll(subscription, on_fragment, context, 1), TARAN_ERROR_IN_USE, "another call");
    CHECK(taran_subscription_close(subscription) == TARAN_ERROR_IN_USE);
    CHECK(taran_subscription_free(subscription) == TARAN_ERROR_IN_USE);
    *(int *)context += 1;
}

static int32_t controlled(void *context, const uint8_t *data, size_t length, const taran_header_t *header)
{
    (void)data, (void)length, (void)header;
    *(int *)context += 1;
    return action;
}

static int32_t find_counter(void *context, const taran_counter_info_t *counter)
{
    CHECK(counter->key_length == 112);
    if (counter->type_id == 1001) {
        CHECK(strcmp(counter->label, "orders") == 0 && memcmp(counter->key, "key", 4) == 0);
        *(int32_t *)context = counter->id;
        return 0;
    }
    return 1;
}

/* Waits in a handler of the client's thread are refused; the closed client calls no other one. */
static taran_client_t *volatile handled_client;
static volatile int32_t refused;

static void on_image(void *context, const taran_image_t *image)
{
    taran_publication_t *publication;
    (void)context, (void)image;
    refused = taran_client_add_publication(handled_client, "aeron:ipc", 9, &publication);
}

static void null_and_invalid(taran_client_t *client)
{
    int received;
    int32_t id;
    int64_t value;
    taran_client_t *none = NULL;
    taran_publication_t *publication = NULL;
    taran_counter_t *counter = NULL;
    taran_claim_t claim;
    CHECK_ERROR(taran_client_connect(NULL, NULL), TARAN_ERROR_INVALID_ARGUMENT, "result is NULL");
    CHECK_ERROR(taran_client_close(NULL), TARAN_ERROR_INVALID_ARGUMENT, "handle is NULL");
    CHECK(taran_client_is_closed(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_id(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_add_publication(NULL, "aeron:ipc", 1, &publication) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(taran_client_add_publication(client, NULL, 1, &publication), TARAN_ERROR_INVALID_ARGUMENT, "text is NULL");
    CHECK_ERROR(taran_client_add_publication(client, "\xff", 1, &publication), TARAN_ERROR_INVALID_ARGUMENT, "UTF-8");
    CHECK(taran_client_add_publication(client, "aeron:ipc", 1, NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_add_subscription(client, "aeron:ipc", 1, NULL, NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(taran_client_add_publication(client, "aeron:tcp", 1, &publication), TARAN_ERROR_REJECTED, "tcp");
    CHECK(publication == NULL);
    CHECK(taran_publication_offer(NULL, NULL, 0) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_publication_position(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_publication_try_claim(NULL, 1, &claim) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_claim_commit(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_subscription_poll(NULL, on_fragment, &received, 1) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_subscription_image_count(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_counter_get(NULL, &value) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_counter_id(NULL, &id) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_add_counter(client, 1001, NULL, 3, "x", &counter) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_for_each_counter(client, NULL, NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_driver_directory(NULL) == NULL);
    CHECK(taran_driver_close(NULL) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_options_set(NULL, "a", "b") == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_client_free(NULL) == 0 && taran_publication_free(NULL) == 0 && taran_subscription_free(NULL) == 0);
    CHECK(taran_counter_free(NULL) == 0 && taran_driver_free(NULL) == 0 && taran_options_free(NULL) == 0);

    taran_options_t *options = taran_options_new();
    CHECK(taran_options_set(options, "aeron.driver.timeout", "soon") == 0);
    CHECK_ERROR(taran_client_connect(options, &none), TARAN_ERROR_CONNECT, "aeron.driver.timeout");
    CHECK(taran_options_free(options) == 0);
    options = taran_options_new();
    taran_driver_t *driver = NULL;
    CHECK(taran_options_set(options, "aeron.term.buffer.length", "7") == 0);
    CHECK_ERROR(taran_driver_start_embedded(options, &driver), TARAN_ERROR_DRIVER, "aeron.term.buffer.length");
    CHECK(none == NULL && driver == NULL);
    CHECK(taran_options_free(options) == 0);
}

static void exclusive_and_claims(taran_client_t *client)
{
    int received = 0;
    int32_t session_id;
    taran_publication_t *publication = NULL;
    taran_claim_t claim, other;
    CHECK(taran_client_add_exclusive_publication(client, "aeron:ipc", 2, &publication) == 0);
    CHECK_ERROR(OFFER(publication, "early"), TARAN_ERROR_NOT_CONNECTED, "no subscriber");
    CHECK(taran_publication_is_connected(publication) == 0);
    CHECK(taran_client_add_subscription(client, "aeron:ipc", 2, NULL, &subscription) == 0);
    AWAIT(taran_publication_is_connected(publication) == 1);
    AWAIT(taran_subscription_is_connected(subscription) == 1);
    CHECK(taran_subscription_image_count(subscription) == 1);
    CHECK(taran_publication_session_id(publication, &session_id) == 0);

    CHECK(taran_publication_position(publication) == 0);
    CHECK(taran_publication_position_limit(publication) > 0);
    int64_t position = taran_publication_try_claim(publication, 5, &claim);
    CHECK(position > 0 && claim.length == 5);
    CHECK_ERROR(OFFER(publication, "meanwhile"), TARAN_ERROR_IN_USE, "open claim");
    CHECK(taran_publication_try_claim(publication, 5, &other) == TARAN_ERROR_IN_USE);
    CHECK(taran_publication_close(publication) == TARAN_ERROR_IN_USE);
    CHECK(taran_publication_free(publication) == TARAN_ERROR_IN_USE);
    memcpy(claim.data, "claim", 5);
    CHECK(taran_claim_commit(&claim) == position);
    CHECK_ERROR(taran_claim_commit(&claim), TARAN_ERROR_INVALID_ARGUMENT, "not open");
    CHECK(taran_claim_abort(&claim) == TARAN_ERROR_INVALID_ARGUMENT);
    CHECK(taran_publication_try_claim(publication, 6, &claim) > position);
    CHECK(taran_claim_abort(&claim) == 0);
    CHECK(OFFER(publication, "") > position);
    AWAIT(taran_subscription_poll(subscription, on_message, &received, 1) >= 0 && received == 1);
    CHECK(last_length == 5 && memcmp(last, "claim", 5) == 0);
    AWAIT(taran_subscription_poll(subscription, on_message, &received, 10) >= 0 && received == 2);
    CHECK(last_length == 0);

    int64_t longest = taran_publication_max_message_length(publication);
    CHECK(longest == 65536 / 8 && taran_publication_max_payload_length(publication) > 1000);
    CHECK_ERROR(taran_publication_offer(publication, (const uint8_t *)last, (size_t)longest + 1), TARAN_ERROR_TOO_LONG,
                "the maximum is 8192");
    CHECK(taran_publication_offer(publication, NULL, 3) == TARAN_ERROR_INVALID_ARGUMENT);

    /* A long message comes in fragments, or as one. */
    memset(last, 'x', (size_t)longest);
    int fragments = 0, messages = 0;
    CHECK(taran_publication_offer_for(publication, (const uint8_t *)last, (size_t)longest, SOON) > 0);
    AWAIT(taran_subscription_poll(subscription, on_fragment, &fragments, 10) == 0 && fragments > 1);
    CHECK(taran_publication_offer_for(publication, (const uint8_t *)last, (size_t)longest, SOON) > 0);
    AWAIT(taran_subscription_poll_messages(subscription, on_message, &messages, 10) >= 0 && messages == 1);
    CHECK(last_length == (size_t)longest && last[longest - 1] == 'x');
    CHECK(taran_publication_offer_for(publication, (const uint8_t *)last, (size_t)longest, SOON) > 0);
    messages = 0;
    action = TARAN_ACTION_CONTINUE;
    AWAIT(taran_subscription_controlled_poll_messages(subscription, controlled, &messages, 10) >= 0 && messages == 1);

    /* Controlled polls: an aborted fragment comes again, also after a value that is no action. */
    received = 0;
    CHECK(taran_publication_offer_for(publication, (const uint8_t *)"again", 5, SOON) > 0);
    action = TARAN_ACTION_ABORT;
    AWAIT(taran_subscription_controlled_poll(subscription, controlled, &received, 10) == 0 && received == 1);
    action = 77;
    CHECK_ERROR(taran_subscription_controlled_poll(subscription, controlled, &received, 10), TARAN_ERROR_INVALID_ARGUMENT,
                "77");
    action = TARAN_ACTION_COMMIT;
    CHECK(taran_subscription_controlled_poll(subscription, controlled, &received, 10) == 1 && received == 3);
    action = TARAN_ACTION_BREAK;
    CHECK(OFFER(publication, "one") > 0 && OFFER(publication, "two") > 0);
    CHECK(taran_subscription_controlled_poll(subscription, controlled, &received, 10) == 1);
    CHECK(taran_subscription_controlled_poll(subscription, controlled, &received, 10) == 1);

    received = 0;
    CHECK(OFFER(publication, "nested") > 0);
    CHECK(taran_subscription_poll(subscription, nested, &received, 10) == 1 && received == 1);
    CHECK(taran_subscription_poll(subscription, NULL, NULL, 10) == TARAN_ERROR_INVALID_ARGUMENT);

    /* Nothing polls: the window fills up. */
    int64_t result;
    while ((result = taran_publication_offer(publication, (const uint8_t *)last, 1000)) > 0) {
    }
    CHECK(result == TARAN_ERROR_BACK_PRESSURED || result == TARAN_ERROR_ADMIN_ACTION);
    CHECK(taran_error_is_retryable(result) == 1);
    while ((result = taran_publication_offer_for(publication, (const uint8_t *)last, 1000, 1)) > 0) {
    }
    CHECK(result == TARAN_ERROR_BACK_PRESSURED || result == TARAN_ERROR_ADMIN_ACTION);

    CHECK(taran_publication_close(publication) == 0 && taran_publication_close(publication) == 0);
    CHECK_ERROR(OFFER(publication, "late"), TARAN_ERROR_CLOSED, "closed");
    CHECK(taran_publication_position(publication) == TARAN_ERROR_CLOSED);
    CHECK(taran_publication_is_connected(publication) == TARAN_ERROR_CLOSED);
    CHECK(taran_subscription_close(subscription) == 0 && taran_subscription_close(subscription) == 0);
    CHECK(taran_subscription_poll(subscription, on_fragment, &received, 1) == TARAN_ERROR_CLOSED);
    CHECK(taran_publication_free(publication) == 0 && taran_subscription_free(subscription) == 0);
}

static void shared(taran_client_t *client)
{
    int received = 0;
    taran_publication_t *publication = NULL;
    taran_claim_t first, second;
    CHECK(taran_client_add_subscription(client, "aeron:ipc", 3, NULL, &subscription) == 0);
    CHECK(taran_client_add_publication(client, "aeron:ipc", 3, &publication) == 0);
    AWAIT(taran_publication_is_connected(publication) == 1);
    CHECK(taran_publication_try_claim(publication, 3, &first) > 0);
    CHECK(taran_publication_try_claim(publication, 3, &second) > 0);
    memcpy(first.data, "1st", 3);
    memcpy(second.data, "2nd", 3);
    CHECK(taran_claim_commit(&second) > 0);
    CHECK(taran_publication_free(publication) == TARAN_ERROR_IN_USE);
    CHECK(taran_claim_commit(&first) > 0);
    AWAIT(taran_subscription_poll(subscription, on_message, &received, 10) >= 0 && received == 2);
    CHECK(memcmp(last, "2nd", 3) == 0);
    CHECK(taran_publication_close(publication) == 0);
    CHECK_ERROR(OFFER(publication, "late"), TARAN_ERROR_CLOSED, "closed");
    CHECK(taran_publication_free(publication) == 0 && taran_subscription_free(subscription) == 0);
}

static int in_use;

static int32_t free_in_handler(void *context, const taran_counter_info_t *info)
{
    (void)info;
    in_use += taran_client_free(context) == TARAN_ERROR_IN_USE;
    return 0;
}

static void counters(taran_client_t *client)
{
    int32_t id = -1, found = -1;
    int64_t value;
    taran_counter_t *counter = NULL;
    CHECK(taran_client_add_counter(client, 1001, (const uint8_t *)"key", 3, "orders", &counter) == 0);
    CHECK(taran_counter_set(counter, 40) == 0 && taran_counter_add(counter, 2) == 0);
    CHECK(taran_counter_get(counter, &value) == 0 && value == 42);
    CHECK(taran_counter_id(counter, &id) == 0);
    value = 0;
    CHECK(taran_client_read_counter(client, id, &value) == 0 && value == 42);
    CHECK(taran_client_for_each_counter(client, find_counter, &found) == 0 && found == id);
    CHECK(taran_client_for_each_counter(client, free_in_handler, client) == 0 && in_use == 1);
    CHECK_ERROR(taran_client_read_counter(client, -1, &value), TARAN_ERROR_NO_SUCH_COUNTER, "-1");
    CHECK_ERROR(taran_client_add_counter(client, 1001, (const uint8_t *)last, 113, "", &counter), TARAN_ERROR_TOO_LONG, "112");
    CHECK(taran_counter_close(counter) == 0 && taran_counter_close(counter) == 0);
    CHECK(taran_counter_get(counter, &value) == TARAN_ERROR_CLOSED);
    CHECK(taran_counter_free(counter) == 0);
}

static void closed_client(const char *directory)
{
    int received = 0;
    int64_t value;
    taran_publication_t *publication = NULL, *late = NULL;
    taran_image_handlers_t handlers = {on_image, NULL, NULL};
    taran_client_t *client = connect_to(directory);
    handled_client = client;
    CHECK(taran_client_add_subscription(client, "aeron:ipc", 4, &handlers, &subscription) == 0);
    CHECK(taran_client_add_publication(client, "aeron:ipc", 4, &publication) == 0);
    AWAIT(refused != 0);
    CHECK(refused == TARAN_ERROR_CALLED_FROM_HANDLER);
    CHECK(taran_client_id(client) >= 0 && taran_client_is_closed(client) == 0);
    CHECK(taran_client_close(client) == 0 && taran_client_close(client) == 0);
    CHECK(taran_client_is_closed(client) == 1);
    CHECK(taran_client_add_publication(client, "aeron:ipc", 4, &late) == TARAN_ERROR_CLOSED && late == NULL);
    CHECK(taran_client_read_counter(client, 0, &value) == TARAN_ERROR_CLOSED);
    CHECK(taran_client_free(client) == 0);
    /* The handles outlive it. */
    CHECK(OFFER(publication, "late") == TARAN_ERROR_CLOSED);
    CHECK(taran_subscription_poll(subscription, on_fragment, &received, 1) == TARAN_ERROR_CLOSED);
    CHECK(taran_publication_free(publication) == 0 && taran_subscription_free(subscription) == 0);
}

int main(void)
{
    taran_driver_t *driver = NULL;
    taran_options_t *options = taran_options_new();
    CHECK(strchr(taran_version(), '.') != NULL && strcmp(taran_last_error(), "") == 0);
    CHECK(strcmp(taran_error_name(TARAN_ERROR_TOO_LONG), "TOO_LONG") == 0);
    CHECK(taran_options_set(options, "aeron.ipc.term.buffer.length", "64k") == 0);
    CHECK(taran_driver_start_embedded(options, &driver) == 0);
    CHECK(taran_options_free(options) == 0);
    taran_client_t *client = connect_to(taran_driver_directory(driver));

    null_and_invalid(client);
    exclusive_and_claims(client);
    shared(client);
    counters(client);
    closed_client(taran_driver_directory(driver));

    /* The driver of the same process ends before its client. */
    CHECK(taran_driver_close(driver) == 0 && taran_driver_is_running(driver) == 0);
    AWAIT(taran_client_is_closed(client) == 1);
    CHECK(taran_client_free(client) == 0);
    CHECK(taran_driver_free(driver) == 0);
    return 0;
}
