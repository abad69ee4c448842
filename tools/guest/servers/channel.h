/*
 * SPDX-License-Identifier: Apache-2.0
 */

/* Connections of the shop and its database. */

#ifndef VSCHED_CHANNEL_H
#define VSCHED_CHANNEL_H

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

/* Reads what has come into a buffer, behind what it holds; 0 at the end. */
static inline int read_more(int channel, char *buffer, size_t size,
                            size_t *filled)
{
    ssize_t got;

    do
        got = read(channel, buffer + *filled, size - *filled);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return 0;
    *filled += (size_t)got;
    return 1;
}

/* Writes all of some data; 0 when the other side is gone. */
static inline int write_all(int channel, const char *data, size_t left)
{
    while (left) {
        ssize_t sent = send(channel, data, left, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return 0;
        data += sent;
        left -= (size_t)sent;
    }
    return 1;
}

#endif
