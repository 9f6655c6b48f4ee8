// SPDX-License-Identifier: Apache-2.0
/*
 * taran.h: client of a media driver that speaks Aeron 1.51, and an embedded driver.
 *
 * Results. A function that can fail returns 0 or a useful number of at least 0 on success, and a negative taran_error_t on
 * failure; taran_last_error() then has the text for the calling thread: what is wrong, and what to do. What a function writes to
 * a pointer is written only on success.
 *
 * Handles. A function that makes an object writes its handle to a pointer. taran_..._close() closes the object; later calls fail
 * with TARAN_ERROR_CLOSED. taran_..._free() closes it too, and ends the handle, which must not be used again, and which no other
 * thread may use at that time. Each handle is freed once; NULL may be freed. A NULL handle is an error of each other call.
 *
 * Pointers. Texts end with 0 and are UTF-8. Data is valid and unchanged during the call. What a function returns as a text is not
 * freed by its caller.
 *
 * Threads. A client, a shared publication and a counter may be used by any number of threads. An exclusive publication, a
 * subscription and an embedded driver are used by one thread at a time; a call that meets another one fails with
 * TARAN_ERROR_IN_USE.
 *
 * Handlers. Those of a poll run inside the poll, the others on the thread of the client: these must return soon, and calls that
 * wait for the driver fail there with TARAN_ERROR_CALLED_FROM_HANDLER. A handler may be called, with its context, until its object
 * or the client is closed; after the close has returned it is not called. A handler must not leave by longjmp() or by a C++
 * exception: the latter ends the process.
 *
 * Driver. If the driver ends, the process goes on: calls fail with TARAN_ERROR_DRIVER_LOST, and the handlers of the client are
 * called. Free the client, and connect again.
 */

#ifndef TARAN_H
#define TARAN_H

/* Generated from crates/capi by cbindgen; a test compares both. */

#include <stddef.h>
#include <stdint.h>

// Reasons why a call fails. The values are part of the binary interface: they do not change. Those from -1 to -5 are the results
// of an offer in Aeron's C client.
enum taran_error_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No subscriber is connected. Offer again later.
  TARAN_ERROR_NOT_CONNECTED = -1,
  // A subscriber, flow control or the driver has to catch up first. Offer again later.
  TARAN_ERROR_BACK_PRESSURED = -2,
  // The log was rotated to its next term. Offer again at once.
  TARAN_ERROR_ADMIN_ACTION = -3,
  // The application closed the object, or its client.
  TARAN_ERROR_CLOSED = -4,
  // The stream has used up its position space. Add a new publication.
  TARAN_ERROR_MAX_POSITION_EXCEEDED = -5,
  // An argument is NULL, not UTF-8, or out of its range.
  TARAN_ERROR_INVALID_ARGUMENT = -10,
  // Another call uses the object: of another thread, or the poll that runs the calling handler; or a claim is open.
  TARAN_ERROR_IN_USE = -11,
  // A message, claim, channel, key or label exceeds its maximum length.
  TARAN_ERROR_TOO_LONG = -12,
  // No driver runs in the directory, or it has ended. Connect again when one has started.
  TARAN_ERROR_NO_DRIVER = -13,
  // Connecting failed for a reason that does not pass by itself, such as an invalid option or a missing permission.
  TARAN_ERROR_CONNECT = -14,
  // The client has lost its driver: the driver has ended, or has timed the client out. Free the client and connect again.
  TARAN_ERROR_DRIVER_LOST = -15,
  // The driver rejected the command.
  TARAN_ERROR_REJECTED = -16,
  // The driver did not answer within its timeout. It may have executed the command.
  TARAN_ERROR_TIMEOUT = -17,
  // The driver has too much to do at present. Repeat the command.
  TARAN_ERROR_OVERLOADED = -18,
  // A log or a response of the driver is damaged or does not match.
  TARAN_ERROR_DAMAGED = -19,
  // A handler called a function that waits for the driver.
  TARAN_ERROR_CALLED_FROM_HANDLER = -20,
  // The embedded driver cannot be started or closed.
  TARAN_ERROR_DRIVER = -21,
  // There is no counter with this id.
  TARAN_ERROR_NO_SUCH_COUNTER = -22,
  // The library has a defect. Report it.
  TARAN_ERROR_BUG = -23,
  // Another error; taran_last_error() says which.
  TARAN_ERROR_OTHER = -24,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum taran_error_t taran_error_t;
#else
typedef int32_t taran_error_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Continuation of a controlled poll after a fragment.
enum taran_action_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // End the poll of this image. The fragment is not consumed: the next poll delivers it again.
  TARAN_ACTION_ABORT = 1,
  // End the poll of this image after this fragment.
  TARAN_ACTION_BREAK = 2,
  // Tell the publisher at once that this fragment is consumed, and go on.
  TARAN_ACTION_COMMIT = 3,
  // Go on.
  TARAN_ACTION_CONTINUE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum taran_action_t taran_action_t;
#else
typedef int32_t taran_action_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A connection to a media driver. Any number of threads may use it at once.
typedef struct taran_client_t taran_client_t;

// A counter of this client. Any number of threads may use it at once. Calls fail with TARAN_ERROR_CLOSED after the close, and with
// TARAN_ERROR_DRIVER_LOST if the client has lost its driver before, which has freed the counter or will not read it again.
typedef struct taran_counter_t taran_counter_t;

// A media driver that runs on threads of this process.
typedef struct taran_driver_t taran_driver_t;

// Options of a client or of an embedded driver, and handlers of a client. May be used several times.
typedef struct taran_options_t taran_options_t;

// A publication. If it is shared, any number of threads may use it at once; an exclusive one is used by one thread at a time.
typedef struct taran_publication_t taran_publication_t;

// A subscription. One thread at a time uses it.
typedef struct taran_subscription_t taran_subscription_t;

// A counter of the driver. The texts and bytes are valid until the handler returns.
typedef struct {
  // Value when it was read.
  int64_t value;
  // Registration id, such as that of a publication.
  int64_t registration_id;
  // Id of the client that owns the counter.
  int64_t owner_id;
  // Id of the counter.
  int32_t id;
  // Type of the counter; those of applications are 1000 and more.
  int32_t type_id;
  // Text for people.
  const char *label;
  // Key, laid out by type.
  const uint8_t *key;
  // Length of the key in bytes: 112.
  size_t key_length;
} taran_counter_info_t;

// Receives a counter; returns 0 to end the iteration, another value to go on.
typedef int32_t (*taran_counter_handler_t)(void *context, const taran_counter_info_t *counter);

// Receives the errors of a client that no call returns, with their code and text. Runs on the client's thread.
typedef void (*taran_error_handler_t)(void *context, int32_t code, const char *text);

// Receives the end of a client, once: TARAN_ERROR_CLOSED, or TARAN_ERROR_DRIVER_LOST with the reason as a text. All objects of the
// client are closed. Runs on the client's thread, or in the call that closes the client.
typedef void (*taran_close_handler_t)(void *context, int32_t code, const char *text);

// Space for one message in the log, to be written in place. Filled by taran_publication_try_claim(), and owned by the caller. Not to
// be copied. Subscribers wait for the claim, so commit it soon.
typedef struct {
  // Memory of the message, to be written; NULL if the claim is not open.
  uint8_t *data;
  // Length of the message in bytes.
  size_t length;
  // Of the library.
  void *private_[8];
} taran_claim_t;

// A stream of a publisher, as a subscription sees it. Valid until the handler returns.
typedef struct {
  // Id of the image.
  int64_t correlation_id;
  // Position of the subscription in the stream.
  int64_t position;
  // Session id of the publication.
  int32_t session_id;
  // Stream id.
  int32_t stream_id;
  // Address of the publisher, or "aeron:ipc".
  const char *source_identity;
} taran_image_t;

// Receives an image. Runs on the client's thread: it must not wait for the driver.
typedef void (*taran_image_handler_t)(void *context, const taran_image_t *image);

// Handlers of the images of a subscription; each may be NULL.
typedef struct {
  // A publisher was found: its messages follow.
  taran_image_handler_t available;
  // The image has ended, or the client has lost its driver.
  taran_image_handler_t unavailable;
  // Passed to the handlers.
  void *context;
} taran_image_handlers_t;

// Fields of the frame of a fragment. Of an assembled message, the header of its last fragment. Valid until the handler
// returns.
typedef struct {
  // Position in the stream after the fragment.
  int64_t position;
  // Value that the publisher has set.
  int64_t reserved_value;
  // Session id of the publication.
  int32_t session_id;
  // Stream id.
  int32_t stream_id;
  // Id of the term.
  int32_t term_id;
  // Offset of the frame in its term, in bytes.
  int32_t term_offset;
  // Flags of the frame: 0x80 for the first fragment of a message, 0x40 for the last.
  uint8_t flags;
} taran_header_t;

// Receives a fragment or message. Runs in the call of the poll. The data is valid until the handler returns.
typedef void (*taran_fragment_handler_t)(void *context,
                                         const uint8_t *data,
                                         size_t length,
                                         const taran_header_t *header);

// Like taran_fragment_handler_t; returns a taran_action_t. Another value ends the poll of the image, which then fails with
// INVALID_ARGUMENT; the fragment is not consumed.
typedef int32_t (*taran_controlled_handler_t)(void *context,
                                              const uint8_t *data,
                                              size_t length,
                                              const taran_header_t *header);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Connects to a running driver; waits for one for at most the option aeron.driver.timeout. `options` may be NULL.
int32_t taran_client_connect(const taran_options_t *options,
                             taran_client_t **client);

// Closes the client and all its publications, subscriptions and counters. The on_close handler runs inside this call. Waits for a
// handler that runs on another thread; after that none runs. Inside a handler it does not wait for that one, and none but on_close
// runs after it.
int32_t taran_client_close(const taran_client_t *client);

// Closes the client and frees its handle. Handles of its publications, subscriptions and counters stay valid, as closed ones, and
// are freed separately. NULL is allowed. Fails with TARAN_ERROR_IN_USE inside a handler that another call with this handle runs
// (on_close, that of taran_client_for_each_counter).
int32_t taran_client_free(taran_client_t *client);

// Returns 1 if the client was closed or has lost its driver, 0 if not.
int32_t taran_client_is_closed(const taran_client_t *client);

// Returns the id by which the driver and its tools know the client.
int64_t taran_client_id(const taran_client_t *client);

// Adds a counter and waits for the driver. Types from 1000 on are for applications. `key` has at most 112 bytes, and may be NULL
// with the length 0; `label` has at most 380 bytes.
int32_t taran_client_add_counter(const taran_client_t *client,
                                 int32_t type_id,
                                 const uint8_t *key,
                                 size_t key_length,
                                 const char *label,
                                 taran_counter_t **counter);

// Writes the id of the counter, by which tools and other clients find it, to `id`.
int32_t taran_counter_id(const taran_counter_t *counter, int32_t *id);

// Writes the value of the counter to `value`.
int32_t taran_counter_get(const taran_counter_t *counter, int64_t *value);

// Sets the value: a process that reads it also sees all earlier writes of this thread.
int32_t taran_counter_set(const taran_counter_t *counter, int64_t value);

// Adds `delta` to the value, wrapping around.
int32_t taran_counter_add(const taran_counter_t *counter, int64_t delta);

// Closes the counter: the driver frees it. A second close has no effect.
int32_t taran_counter_close(const taran_counter_t *counter);

// Closes the counter unless it is closed, and frees its handle. NULL is allowed.
int32_t taran_counter_free(taran_counter_t *counter);

// Writes the value of any counter of the driver to `value`.
int32_t taran_client_read_counter(const taran_client_t *client, int32_t id, int64_t *value);

// Calls `handler` with each counter of the driver, in the order of their ids, in this call.
int32_t taran_client_for_each_counter(const taran_client_t *client,
                                      taran_counter_handler_t handler,
                                      void *context);

// Starts a driver in the directory of the option aeron.dir, or in the default one. `options` may be NULL.
int32_t taran_driver_start(const taran_options_t *options,
                           taran_driver_t **driver);

// Starts a driver in a directory of its own, which it deletes when it closes: for tests, and for programs that need no other
// process. taran_driver_directory() returns the directory for the option aeron.dir of clients. `options` may be NULL.
int32_t taran_driver_start_embedded(const taran_options_t *options,
                                    taran_driver_t **driver);

// Returns the directory of the driver; NULL for a NULL handle. Valid until the handle is freed.
const char *taran_driver_directory(const taran_driver_t *driver);

// Returns 1 while the driver runs, 0 when it was closed or has ended by itself: a client may end it, or an agent has failed.
int32_t taran_driver_is_running(const taran_driver_t *driver);

// Closes the driver, and waits for its threads. Its clients lose it. A second close has no effect.
int32_t taran_driver_close(const taran_driver_t *driver);

// Closes the driver unless it is closed, and frees its handle. NULL is allowed.
int32_t taran_driver_free(taran_driver_t *driver);

// Returns the text of the last failed call of this thread: what is wrong, and what to do. An empty text if no call has failed.
// Valid until the next call of this library on this thread that fails.
const char *taran_last_error(void);

// Returns the name of an error code, such as "BACK_PRESSURED"; "OK" for 0 and more. Valid for ever.
const char *taran_error_name(int64_t code);

// Returns 1 if the same call can succeed later without a change: NOT_CONNECTED, BACK_PRESSURED, ADMIN_ACTION, NO_DRIVER, TIMEOUT
// and OVERLOADED. 0 for others.
int32_t taran_error_is_retryable(int64_t code);

// Returns the version of the library, such as "0.1.0". Valid for ever.
const char *taran_version(void);

// Returns options without any set: a client or driver with them has the options of the environment (AERON_DIR, ...) and the
// defaults.
taran_options_t *taran_options_new(void);

// Sets an option by its name as a property, such as "aeron.dir", "aeron.driver.timeout" or "aeron.client.name"; it overrides the
// environment. Names and values are checked when a client or driver is made with them.
int32_t taran_options_set(const taran_options_t *options,
                          const char *name,
                          const char *value);

// Sets the handler of the errors of a client that no call returns. Without one, or with NULL, they are written to standard error.
int32_t taran_options_on_error(const taran_options_t *options,
                               taran_error_handler_t handler,
                               void *context);

// Sets the handler of the end of a client. NULL for none.
int32_t taran_options_on_close(const taran_options_t *options,
                               taran_close_handler_t handler,
                               void *context);

// Frees the options. NULL is allowed.
int32_t taran_options_free(taran_options_t *options);

// Adds a shared publication and waits for the driver. Publications of this client with the same channel and stream id share the
// stream.
int32_t taran_client_add_publication(const taran_client_t *client,
                                     const char *channel,
                                     int32_t stream_id,
                                     taran_publication_t **publication);

// Adds an exclusive publication, a stream with one writer, and waits for the driver.
int32_t taran_client_add_exclusive_publication(const taran_client_t *client,
                                               const char *channel,
                                               int32_t stream_id,
                                               taran_publication_t **publication);

// Offers a message: copies it into the log. Returns the position after it. NOT_CONNECTED, BACK_PRESSURED and ADMIN_ACTION pass by
// themselves: offer again.
int64_t taran_publication_offer(const taran_publication_t *publication,
                                const uint8_t *data,
                                size_t length);

// Offers a message again while the error passes by itself, for at most `timeout_ns` nanoseconds; the thread yields between the
// attempts. Returns the position after the message, or the error of the last attempt.
int64_t taran_publication_offer_for(const taran_publication_t *publication,
                                    const uint8_t *data,
                                    size_t length,
                                    uint64_t timeout_ns);

// Claims space for a message of at most taran_publication_max_payload_length() bytes, to be written to `claim->data`. Returns the
// position after it. Each claim has to be committed or aborted, also after the publication was closed; until then an exclusive
// publication refuses other calls, and the handle is not freed.
int64_t taran_publication_try_claim(const taran_publication_t *publication,
                                    size_t length,
                                    taran_claim_t *claim);

// Publishes the message of a claim. Returns the position after it.
int64_t taran_claim_commit(taran_claim_t *claim);

// Gives a claim up: subscribers skip its space.
int32_t taran_claim_abort(taran_claim_t *claim);

// Returns 1 if the publication is open and has a subscriber, 0 if not.
int32_t taran_publication_is_connected(const taran_publication_t *publication);

// Returns the position of the next message: the number of bytes before it in the stream, with frame headers and padding.
int64_t taran_publication_position(const taran_publication_t *publication);

// Returns the position at which back-pressure sets in.
int64_t taran_publication_position_limit(const taran_publication_t *publication);

// Returns the maximum length of a message in bytes; longer ones than a frame are fragmented.
int64_t taran_publication_max_message_length(const taran_publication_t *publication);

// Returns the maximum length of an unfragmented message or a claim in bytes.
int64_t taran_publication_max_payload_length(const taran_publication_t *publication);

// Writes the session id of the publication to `session_id`. It may be negative.
int32_t taran_publication_session_id(const taran_publication_t *publication, int32_t *session_id);

// Closes the publication. Messages that were offered before are still delivered. A second close has no effect.
int32_t taran_publication_close(const taran_publication_t *publication);

// Closes the publication unless it is closed, and frees its handle. Fails while it has an open claim. NULL is allowed.
int32_t taran_publication_free(taran_publication_t *publication);

// Adds a subscription and waits for the driver. `handlers` may be NULL.
int32_t taran_client_add_subscription(const taran_client_t *client,
                                      const char *channel,
                                      int32_t stream_id,
                                      const taran_image_handlers_t *handlers,
                                      taran_subscription_t **subscription);

// Calls `handler` with at most `fragment_limit` fragments. Returns their number, or an error: CLOSED or DRIVER_LOST end all polls.
int64_t taran_subscription_poll(const taran_subscription_t *subscription,
                                taran_fragment_handler_t handler,
                                void *context,
                                size_t fragment_limit);

// Like taran_subscription_poll(), but `handler` receives whole messages: fragmented ones are assembled in memory of the
// subscription.
int64_t taran_subscription_poll_messages(const taran_subscription_t *subscription,
                                         taran_fragment_handler_t handler,
                                         void *context,
                                         size_t fragment_limit);

// Like taran_subscription_poll(), but `handler` returns how the poll of the image goes on.
int64_t taran_subscription_controlled_poll(const taran_subscription_t *subscription,
                                           taran_controlled_handler_t handler,
                                           void *context,
                                           size_t fragment_limit);

// Like taran_subscription_controlled_poll(), but `handler` receives whole messages.
int64_t taran_subscription_controlled_poll_messages(const taran_subscription_t *subscription,
                                                    taran_controlled_handler_t handler,
                                                    void *context,
                                                    size_t fragment_limit);

// Returns 1 if the subscription is open and has an image, 0 if not.
int32_t taran_subscription_is_connected(const taran_subscription_t *subscription);

// Returns the number of images.
int64_t taran_subscription_image_count(const taran_subscription_t *subscription);

// Closes the subscription. Waits for a handler of its images that runs on another thread; after that none runs. Fails with IN_USE
// while a poll runs. A second close has no effect.
int32_t taran_subscription_close(const taran_subscription_t *subscription);

// Closes the subscription unless it is closed, and frees its handle. Fails with IN_USE while a poll runs. NULL is allowed.
int32_t taran_subscription_free(taran_subscription_t *subscription);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TARAN_H */
