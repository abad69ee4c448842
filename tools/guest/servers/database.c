/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * An SQL database that is served over TCP: SQLite, in memory, with the
 * tables of a small bookshop.
 *
 * A client sends one statement a line. The answer is one line for each row,
 * its columns separated by tabs, and a line that consists of a dot; or a line
 * that begins with an exclamation mark and states the error.
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"

enum {
    MOST_CLIENTS = 64,
    MOST_LINE = 4096,
    MOST_ANSWER = 1 << 16,
    ITEMS = 400,
    SALES = 800,
    SUBJECTS = 20,
};

struct client {
    size_t filled;
    char line[MOST_LINE];
};

static struct client clients[MOST_CLIENTS];
static struct pollfd watched[MOST_CLIENTS + 1];
static nfds_t used = 1;
static sqlite3 *database;
static char answer[MOST_ANSWER];
static size_t length;

static void die(const char *what)
{
    fprintf(stderr, "vsched-database: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void must(const char *sql)
{
    char *problem = NULL;

    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK) {
        fprintf(stderr, "vsched-database: %s: %s\n", sql, problem);
        exit(1);
    }
}

/* The same shop each time. */
static void fill(void)
{
    char sql[256];

    must("CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT, "
         "subject INTEGER, price INTEGER, stock INTEGER);"
         "CREATE TABLE sales (id INTEGER PRIMARY KEY, item INTEGER, "
         "quantity INTEGER);"
         "CREATE INDEX by_item ON sales (item);"
         "CREATE INDEX by_subject ON items (subject);"
         "BEGIN;");
    for (int i = 1; i <= ITEMS; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO items VALUES (%d, 'Volume %d of series %d', "
                 "%d, %d, 1000000)",
                 i, i * 7919 % 997, i * 31 % 53, i % SUBJECTS,
                 500 + i * 37 % 2500);
        must(sql);
    }
    for (int i = 1; i <= SALES; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO sales VALUES (%d, %d, %d)", i,
                 1 + i * 7 % ITEMS, 1 + i % 5);
        must(sql);
    }
    must("COMMIT;");
}

static void add(const char *text)
{
    size_t more = strlen(text);

    if (length + more < sizeof answer) {
        memcpy(answer + length, text, more);
        length += more;
    }
}

static void execute(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);

    length = 0;
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const unsigned char *text = sqlite3_column_text(statement, i);

            if (i)
                add("\t");
            add(text ? (const char *)text : "");
        }
        add("\n");
    }
    if (code == SQLITE_DONE) {
        add(".\n");
    } else {
        length = 0;
        add("!");
        add(sqlite3_errmsg(database));
        add("\n");
    }
    sqlite3_finalize(statement);
}

/* False when the client is to be forgotten. */
static int serve(int channel, struct client *client)
{
    char *end;

    if (!read_more(channel, client->line, sizeof client->line,
                   &client->filled))
        return 0;
    while ((end = memchr(client->line, '\n', client->filled)) != NULL) {
        size_t whole = (size_t)(end - client->line) + 1;

        *end = '\0';
        execute(client->line);
        if (!write_all(channel, answer, length))
            return 0;
        client->filled -= whole;
        memmove(client->line, client->line + whole, client->filled);
    }
    return client->filled < sizeof client->line;
}

static void admit(void)
{
    int on = 1;
    int channel = accept4(watched[0].fd, NULL, NULL, SOCK_CLOEXEC);

    if (channel < 0)
        return;
    if (used > MOST_CLIENTS) {
        close(channel);
        return;
    }
    setsockopt(channel, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    clients[used - 1].filled = 0;
    watched[used++] = (struct pollfd){.fd = channel, .events = POLLIN};
}

static void forget(nfds_t place)
{
    close(watched[place].fd);
    used--;
    watched[place] = watched[used];
    clients[place - 1] = clients[used - 1];
}

int main(int argc, char **argv)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (argc != 2 || atoi(argv[1]) < 1 || atoi(argv[1]) > 65535) {
        fputs("usage: vsched-database PORT\n", stderr);
        return 2;
    }
    own.sin_port = htons((uint16_t)atoi(argv[1]));
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        die("sqlite3_open");
    fill();
    if (listener < 0 ||
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(listener, (struct sockaddr *)&own, sizeof own) ||
        listen(listener, MOST_CLIENTS))
        die("socket");
    watched[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll(watched, used, -1) < 0 && errno != EINTR)
            die("poll");
        for (nfds_t i = used - 1; i > 0; i--)
            if (watched[i].revents && !serve(watched[i].fd, &clients[i - 1]))
                forget(i);
        if (watched[0].revents)
            admit();
    }
}
