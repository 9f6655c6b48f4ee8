// SPDX-License-Identifier: Apache-2.0
/* Runs a driver in the directory of the argument until standard input ends. */
#include "check.h"

int main(int count, char **arguments)
{
    taran_driver_t *driver = NULL;
    taran_options_t *options = taran_options_new();
    CHECK(count == 2);
    CHECK(taran_options_set(options, "aeron.dir", arguments[1]) == 0);
    CHECK(taran_options_set(options, "aeron.ipc.term.buffer.length", "64k") == 0);
    CHECK(taran_driver_start(options, &driver) == 0);
    CHECK(taran_options_free(options) == 0);
    CHECK(strcmp(taran_driver_directory(driver), arguments[1]) == 0);
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    CHECK(taran_driver_is_running(driver) == 1);
    CHECK(taran_driver_close(driver) == 0);
    CHECK(taran_driver_is_running(driver) == 0);
    CHECK(taran_driver_free(driver) == 0);
    return 0;
}
