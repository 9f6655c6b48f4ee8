// SPDX-License-Identifier: Apache-2.0
/* Checks of the test programs: a failed one prints its line and ends the program. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taran.h"

#define CHECK(condition)                                                                                \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, taran_last_error()); \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

/* The call fails with this code, and a text that contains another. */
#define CHECK_ERROR(call, code, text)                      \
    do {                                                   \
        CHECK((call) == (code));                           \
        CHECK(strstr(taran_last_error(), (text)) != NULL); \
    } while (0)

/* Waits until the condition is true, for far longer than it ever takes. */
#define AWAIT(condition)                            \
    do {                                            \
        time_t deadline_ = time(NULL) + 60;         \
        while (!(condition)) {                      \
            CHECK(time(NULL) < deadline_);          \
            sched_yield();                          \
        }                                           \
    } while (0)

static inline taran_client_t *connect_to(const char *directory)
{
    taran_client_t *client = NULL;
    taran_options_t *options = taran_options_new();
    CHECK(taran_options_set(options, "aeron.dir", directory) == 0);
    CHECK(taran_client_connect(options, &client) == 0);
    CHECK(taran_options_free(options) == 0);
    return client;
}
