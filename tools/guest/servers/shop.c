/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The application behind the HTTP server: pages of a small bookshop, made of
 * what an SQL database on another guest answers (see database.c).
 *
 * It speaks SCGI on a Unix socket. As many processes as WORKERS says share
 * that socket, each with a connection of its own to the database. The path is
 * the class of the request, the query string the item's number:
 *
 *   /shop/home?ITEM    a point query and five offers of the same subject
 *   /shop/product?ITEM a point query and how many were sold
 *   /shop/search?ITEM  a scan of all titles
 *   /shop/best?ITEM    the items sold most often: a join with all sales
 *   /shop/order?ITEM   a transaction of an update and an insertion
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"

enum {
    MOST_HEADERS = 8192,
    MOST_PAGE = 1 << 16,
    MOST_STATEMENTS = 4,
    MOST_ITEM = 400,
};

static const struct {
    const char *path;
    const char *statements[MOST_STATEMENTS];
} CLASSES[] = {
    {"/home",
     {"SELECT title, price, subject FROM items WHERE id = %d",
      "SELECT id, title FROM items WHERE subject = %d %% 20 LIMIT 5"}},
    {"/product",
     {"SELECT title, price, stock FROM items WHERE id = %d",
      "SELECT sum(quantity) FROM sales WHERE item = %d"}},
    {"/search",
     {"SELECT id, title FROM items WHERE title LIKE '%%series %d%%' "
      "LIMIT 10"}},
    {"/best",
     {"SELECT title, sum(quantity) AS sold FROM sales JOIN items ON "
      "items.id = item WHERE subject = %d %% 20 GROUP BY item ORDER BY sold "
      "DESC LIMIT 5"}},
    {"/order",
     {"UPDATE items SET stock = stock - 1 WHERE id = %d",
      "INSERT OR REPLACE INTO sales VALUES (1 + abs(random()) %% 800, %d, 1)",
      "SELECT stock FROM items WHERE id = %d"}},
};

static int database = -1;
static char headers[MOST_HEADERS];
static char page[MOST_PAGE];

static void die(const char *what)
{
    fprintf(stderr, "vsched-shop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void connect_database(const struct sockaddr_in *address)
{
    const struct timespec pause = {0, 100000000};
    int on = 1;

    /* The other guest may boot more slowly. */
    for (int tries = 0; tries < 600; tries++) {
        database = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (database < 0)
            die("socket");
        if (!connect(database, (const struct sockaddr *)address,
                     sizeof *address)) {
            setsockopt(database, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return;
        }
        close(database);
        nanosleep(&pause, NULL);
    }
    die("connect");
}

/* The rows of a statement, behind what the page holds; 0 for an error. */
static size_t query(const char *form, int item, size_t length)
{
    char sql[512];
    size_t began = length;
    int bytes = snprintf(sql, sizeof sql, form, item);

    sql[bytes++] = '\n';
    if (!write_all(database, sql, (size_t)bytes))
        die("database");
    for (;;) {
        if (!read_more(database, page, sizeof page - 1, &length))
            die("database");
        if (page[length - 1] != '\n')
            continue;
        if (page[began] == '!')
            return 0;
        if (page[length - 2] == '.' &&
            (length - 2 == began || page[length - 3] == '\n'))
            return length - 2;
    }
}

/* The value of an SCGI header; empty where there is none. */
static const char *header(const char *name, size_t length)
{
    for (size_t i = 0; i < length;) {
        const char *value = headers + i + strlen(headers + i) + 1;

        if (!strcmp(headers + i, name))
            return value;
        i = (size_t)(value - headers) + strlen(value) + 1;
    }
    return "";
}

/* Reads the headers, which are one netstring; -1 for none. */
static ssize_t read_headers(int channel)
{
    size_t filled = 0;

    for (;;) {
        size_t size;
        char *rest;

        if (!read_more(channel, headers, sizeof headers - 1, &filled))
            return -1;
        headers[filled] = '\0';
        size = strtoul(headers, &rest, 10);
        if (*rest == ':' && filled >= (size_t)(rest + 1 - headers) + size + 1) {
            memmove(headers, rest + 1, size);
            headers[size] = '\0';
            return (ssize_t)size;
        }
        if (filled >= sizeof headers - 1)
            return -1;
    }
}

static void answer(int channel)
{
    ssize_t size = read_headers(channel);
    const char *path;
    size_t length = 0;
    int item;

    if (size < 0)
        return;
    path = header("PATH_INFO", (size_t)size);
    item = atoi(header("QUERY_STRING", (size_t)size));
    item = 1 + (item < 0 ? 0 : item) % MOST_ITEM;
    for (size_t i = 0; i < sizeof CLASSES / sizeof *CLASSES; i++) {
        if (strcmp(path, CLASSES[i].path))
            continue;
        length = (size_t)sprintf(
            page, "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n");
        for (int j = 0; j < MOST_STATEMENTS; j++)
            if (CLASSES[i].statements[j] && length)
                length = query(CLASSES[i].statements[j], item, length);
        if (!length)
            length = (size_t)sprintf(
                page, "Status: 502 Bad Gateway\r\n\r\ndatabase error\n");
    }
    if (!length)
        length = (size_t)sprintf(
            page, "Status: 404 Not Found\r\n\r\nno such page\n");
    write_all(channel, page, length);
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (argc != 5 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 ||
        strlen(argv[3]) >= sizeof own.sun_path) {
        fputs("usage: vsched-shop DATABASE PORT SOCKET WORKERS\n", stderr);
        return 2;
    }
    to.sin_port = htons((uint16_t)atoi(argv[2]));
    strcpy(own.sun_path, argv[3]);
    unlink(argv[3]);
    if (listener < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) ||
        listen(listener, 128))
        die("socket");
    for (int i = 1; i < atoi(argv[4]); i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            break;
        }
    connect_database(&to);
    for (;;) {
        int channel = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (channel < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            die("accept");
        }
        answer(channel);
        close(channel);
    }
}
