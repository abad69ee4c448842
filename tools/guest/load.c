/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Moves packets or blocks at a steady rate: the load of the tiny guest.
 *
 * What comes in bursts is handed to the kernel at once, RATE is per second
 * and counts single packets or blocks. A load that can not keep up loses
 * what it is late by; it never makes up for it in a flood. SECONDS may be
 * 0: until it is killed. At its end it prints what it did as JSON.
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_BURST = 256,
    MOST_BYTES = 1 << 20,
    MOST_PACKET = 65507,
    ALIGN = 4096,
};

#define NS_PER_S INT64_C(1000000000)

static const char USAGE[] =
    "usage: vsched-load send ADDRESS PORT RATE BURST BYTES SECONDS\n"
    "       vsched-load sink PORT SECONDS\n"
    "       vsched-load echo PORT WORK_US SECONDS\n"
    "       vsched-load read DEVICE RATE BURST BYTES SECONDS\n"
    "       vsched-load write DEVICE RATE BURST BYTES SECONDS\n"
    "\n"
    "send   UDP packets to an address\n"
    "sink   take in UDP packets\n"
    "echo   answer each UDP packet after so much work of the CPU\n"
    "read   blocks past the cache, scattered over a device; so does write\n";

static volatile sig_atomic_t ending;

static void end(int number)
{
    (void)number;
    ending = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "vsched-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long number(const char *name, const char *text, long low, long high)
{
    char *rest;
    long value = strtol(text, &rest, 10);

    if (*text == '\0' || *rest != '\0' || value < low || value > high) {
        fprintf(stderr, "vsched-load: %s: %s is not a whole number of "
                "%ld..%ld\n", name, text, low, high);
        exit(2);
    }
    return value;
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* When bursts are due, and when the load ends. */
struct pace {
    int64_t began_ns;
    int64_t due_ns;
    int64_t step_ns;
    int64_t end_ns;
};

static struct pace pace_of(long rate, long burst, long seconds)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);

    return (struct pace){
        .began_ns = now,
        .due_ns = now,
        .step_ns = burst * NS_PER_S / rate,
        .end_ns = seconds ? now + seconds * NS_PER_S : INT64_MAX,
    };
}

/* Waits for the next burst; false at the load's end. */
static int due(struct pace *pace)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);

    if (now - pace->due_ns > NS_PER_S / 10)
        pace->due_ns = now;
    while (!ending && now < pace->due_ns && now < pace->end_ns) {
        int64_t until = pace->due_ns < pace->end_ns ? pace->due_ns
                                                    : pace->end_ns;
        struct timespec when = {until / NS_PER_S, until % NS_PER_S};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
        now = now_ns(CLOCK_MONOTONIC);
    }
    pace->due_ns += pace->step_ns;
    return !ending && now < pace->end_ns;
}

static void tell(const char *what, uint64_t count, int64_t began_ns)
{
    printf("{\"load\": \"%s\", \"count\": %" PRIu64 ", \"seconds\": %.3f}\n",
           what, count, (now_ns(CLOCK_MONOTONIC) - began_ns) / 1e9);
}

static struct sockaddr_in address_of(const char *text, long port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
    };

    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        fprintf(stderr, "vsched-load: %s is no IPv4 address\n", text);
        exit(2);
    }
    return address;
}

static int run_send(char **words)
{
    struct sockaddr_in to = address_of(
        words[0], number("PORT", words[1], 1, 65535));
    long rate = number("RATE", words[2], 1, 10000000);
    long burst = number("BURST", words[3], 1, MOST_BURST);
    long bytes = number("BYTES", words[4], 1, MOST_PACKET);
    long seconds = number("SECONDS", words[5], 0, 86400);
    int channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static char payload[MOST_PACKET];
    static struct mmsghdr packets[MOST_BURST];
    struct iovec content = {payload, (size_t)bytes};
    struct pace pace;
    uint64_t count = 0;

    if (channel < 0)
        die("socket");
    for (long i = 0; i < burst; i++) {
        /* Not connected: nobody has to listen there. */
        packets[i].msg_hdr.msg_name = &to;
        packets[i].msg_hdr.msg_namelen = sizeof to;
        packets[i].msg_hdr.msg_iov = &content;
        packets[i].msg_hdr.msg_iovlen = 1;
    }
    for (pace = pace_of(rate, burst, seconds); due(&pace);) {
        int sent = sendmmsg(channel, packets, (unsigned)burst, 0);

        if (sent > 0)
            count += (uint64_t)sent;
        else if (errno != ENOBUFS && errno != EHOSTUNREACH &&
                 errno != ENETUNREACH && errno != EINTR)
            die("send");
    }
    tell("send", count, pace.began_ns);
    return 0;
}

/* A socket that looks up now and then whether it is time to end. */
static int listening(long port)
{
    int channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in own = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
    };
    struct timeval patience = {.tv_sec = 0, .tv_usec = 500000};

    if (channel < 0 || bind(channel, (struct sockaddr *)&own, sizeof own) ||
        setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &patience,
                   sizeof patience))
        die("socket");
    return channel;
}

static int run_sink(char **words)
{
    int channel = listening(number("PORT", words[0], 1, 65535));
    struct pace pace = pace_of(1, 1, number("SECONDS", words[1], 0, 86400));
    static char payload[MOST_BURST][2048];
    static struct mmsghdr packets[MOST_BURST];
    static struct iovec contents[MOST_BURST];
    uint64_t count = 0;

    for (int i = 0; i < MOST_BURST; i++) {
        contents[i] = (struct iovec){payload[i], sizeof payload[i]};
        packets[i].msg_hdr.msg_iov = &contents[i];
        packets[i].msg_hdr.msg_iovlen = 1;
    }
    while (!ending && now_ns(CLOCK_MONOTONIC) < pace.end_ns) {
        int got = recvmmsg(channel, packets, MOST_BURST, MSG_WAITFORONE,
                           NULL);

        if (got > 0)
            count += (uint64_t)got;
    }
    tell("sink", count, pace.began_ns);
    return 0;
}

static int run_echo(char **words)
{
    int channel = listening(number("PORT", words[0], 1, 65535));
    int64_t work_ns = 1000 * number("WORK_US", words[1], 0, 10000000);
    struct pace pace = pace_of(1, 1, number("SECONDS", words[2], 0, 86400));
    static char payload[MOST_PACKET];
    uint64_t count = 0;

    while (!ending && now_ns(CLOCK_MONOTONIC) < pace.end_ns) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t got = recvfrom(channel, payload, sizeof payload, 0,
                               (struct sockaddr *)&from, &length);
        int64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;

        if (got < 0)
            continue;
        while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
            ;
        if (sendto(channel, payload, (size_t)got, 0,
                   (struct sockaddr *)&from, length) == got)
            count++;
    }
    tell("echo", count, pace.began_ns);
    return 0;
}

static int run_blocks(int writing, char **words)
{
    const char *path = words[0];
    long rate = number("RATE", words[1], 1, 10000000);
    long burst = number("BURST", words[2], 1, MOST_BURST);
    long bytes = number("BYTES", words[3], 512, MOST_BYTES);
    long seconds = number("SECONDS", words[4], 0, 86400);
    int device = open(path, O_DIRECT | O_CLOEXEC |
                      (writing ? O_WRONLY : O_RDONLY));
    static struct iocb requests[MOST_BURST];
    static struct iocb *queue[MOST_BURST];
    static struct io_event events[MOST_BURST];
    aio_context_t context = 0;
    uint64_t size = 0, places, place = 0, count = 0;
    struct pace pace;
    void *buffer;

    if (device < 0 || ioctl(device, BLKGETSIZE64, &size))
        die(path);
    if (bytes % 512 || size < (uint64_t)bytes * 4) {
        fprintf(stderr, "vsched-load: BYTES: %ld is no multiple of 512 of "
                "which %s holds four\n", bytes, path);
        return 2;
    }
    places = size / (uint64_t)bytes;
    if (posix_memalign(&buffer, ALIGN, (size_t)bytes))
        die("memory");
    memset(buffer, 0x5a, (size_t)bytes);
    if (syscall(SYS_io_setup, burst, &context))
        die("io_setup");
    for (pace = pace_of(rate, burst, seconds); due(&pace);) {
        for (long i = 0; i < burst; i++) {
            /* Neighbours would be merged into one request. */
            place = (place * UINT64_C(6364136223846793005) +
                     UINT64_C(1442695040888963407));
            requests[i] = (struct iocb){
                .aio_lio_opcode = writing ? IOCB_CMD_PWRITE
                                          : IOCB_CMD_PREAD,
                .aio_fildes = (uint32_t)device,
                .aio_buf = (uintptr_t)buffer,
                .aio_nbytes = (uint64_t)bytes,
                .aio_offset = (int64_t)((place >> 33) % places *
                                        (uint64_t)bytes),
            };
            queue[i] = &requests[i];
        }
        long given = syscall(SYS_io_submit, context, burst, queue);

        if (given <= 0)
            die("io_submit");
        for (long back = 0; back < given;) {
            long got = syscall(SYS_io_getevents, context, given - back,
                               given - back, events, NULL);

            if (got < 0 && errno != EINTR)
                die("io_getevents");
            for (long i = 0; i < got; i++) {
                if (events[i].res != bytes) {
                    errno = events[i].res < 0 ? (int)-events[i].res : EIO;
                    die(path);
                }
            }
            back += got > 0 ? got : 0;
        }
        count += (uint64_t)given;
    }
    tell(writing ? "write" : "read", count, pace.began_ns);
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = end};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (argc == 8 && !strcmp(argv[1], "send"))
        return run_send(argv + 2);
    if (argc == 4 && !strcmp(argv[1], "sink"))
        return run_sink(argv + 2);
    if (argc == 5 && !strcmp(argv[1], "echo"))
        return run_echo(argv + 2);
    if (argc == 7 && !strcmp(argv[1], "read"))
        return run_blocks(0, argv + 2);
    if (argc == 7 && !strcmp(argv[1], "write"))
        return run_blocks(1, argv + 2);
    fputs(USAGE, stderr);
    return 2;
}
