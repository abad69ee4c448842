/*
 * SPDX-License-Identifier: Apache-2.0
 */


/*
 * A fixed amount of work for many threads: what instances lose, or gain, by
 * having their vCPUs descheduled depends on how the threads wait for each
 * other, and each kind waits in another way.
 *
 * The rounds done are counted in PROGRESS while it works. At its end it
 * prints how long it took as JSON.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_THREADS = 64,
    LOCKS = 16,
    STEPS = 400,
    CHUNK = 4096,
    DEPTH = 16,
    SEEN = 4096,
    PAGES = 64,
};

static const char PROGRESS[] = "/run/vsched.progress";

static const char USAGE[] =
    "usage: vsched-work KIND THREADS ROUNDS\n"
    "\n"
    "locks     small critical sections on many locks, and a barrier that\n"
    "          sleeps\n"
    "pipeline  threads that hand chunks on: make, hash, deduplicate and\n"
    "          compress, collect\n"
    "memory    map, touch and unmap pages, which interrupts all CPUs\n"
    "spin      work, and a barrier that spins\n";

static long threads;
static long rounds;
static atomic_long done;

static void die(const char *what)
{
    fprintf(stderr, "vsched-work: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* Something to do that no compiler takes away. */
static uint64_t churn(uint64_t seed, int steps)
{
    for (int i = 0; i < steps; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

/* Called by one thread a round; writes a few times a second at most. */
static void count(long finished)
{
    static double written_s;
    static int file = -1;
    double at_s;
    char text[32];
    int length;

    atomic_store(&done, finished);
    if (finished % 8 && finished != rounds)
        return;
    at_s = now_s();
    if (at_s - written_s < 0.25 && finished != rounds)
        return;
    written_s = at_s;
    if (file < 0) {
        file = open(PROGRESS, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC,
                    0644);
        if (file < 0)
            die(PROGRESS);
    }
    length = snprintf(text, sizeof text, "%ld\n", finished);
    if (pwrite(file, text, (size_t)length, 0) != length)
        die(PROGRESS);
}

static pthread_barrier_t barrier;
static struct {
    pthread_mutex_t mutex;
    uint64_t value;
    char apart[64];
} locks[LOCKS];

static void *run_locks(void *place)
{
    uint64_t seed = (uintptr_t)place + 1;

    for (long round = 1; round <= rounds; round++) {
        for (int step = 0; step < STEPS; step++) {
            seed = churn(seed, 20);
            pthread_mutex_lock(&locks[seed % LOCKS].mutex);
            locks[seed % LOCKS].value += churn(seed, 10);
            pthread_mutex_unlock(&locks[seed % LOCKS].mutex);
        }
        pthread_barrier_wait(&barrier);
        if (place == NULL)
            count(round);
    }
    return NULL;
}

static atomic_long arrived;
static atomic_long phase;

static void *run_spin(void *place)
{
    uint64_t seed = (uintptr_t)place + 1;

    for (long round = 1; round <= rounds; round++) {
        seed = churn(seed, 500);
        if (atomic_fetch_add(&arrived, 1) + 1 == threads * round)
            atomic_store(&phase, round);
        while (atomic_load(&phase) < round)
            __builtin_ia32_pause();
        if (place == NULL)
            count(round);
    }
    return (void *)(uintptr_t)(seed == 0);
}

static void *run_memory(void *place)
{
    for (long round = 1; round <= rounds; round++) {
        for (int step = 0; step < 8; step++) {
            char *pages = mmap(NULL, PAGES * CHUNK, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

            if (pages == MAP_FAILED)
                die("mmap");
            for (long page = 0; page < PAGES; page++)
                pages[page * CHUNK] = (char)page;
            if (munmap(pages, PAGES * CHUNK))
                die("munmap");
        }
        if (place == NULL)
            count(round);
    }
    return NULL;
}

/* A queue with room for a few chunks. */
struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t *chunks[DEPTH];
    long first, used, feeders;
};

static struct queue made, hashed, packed;

static void put(struct queue *queue, uint64_t *chunk)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->used == DEPTH)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    queue->chunks[(queue->first + queue->used++) % DEPTH] = chunk;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

/* NULL when there are no more, ever. */
static uint64_t *take(struct queue *queue)
{
    uint64_t *chunk = NULL;

    pthread_mutex_lock(&queue->mutex);
    while (!queue->used && queue->feeders)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    if (queue->used) {
        chunk = queue->chunks[queue->first];
        queue->first = (queue->first + 1) % DEPTH;
        queue->used--;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    return chunk;
}

static void leave(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->feeders--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

static uint64_t seen[SEEN];
static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *run_hash(void *place)
{
    uint64_t *chunk;

    (void)place;
    while ((chunk = take(&made))) {
        uint64_t hash = 0;

        for (size_t i = 1; i < CHUNK / sizeof *chunk; i++)
            hash = churn(hash ^ chunk[i], 12);
        chunk[0] = hash;
        put(&hashed, chunk);
    }
    leave(&hashed);
    return NULL;
}

static void *run_pack(void *place)
{
    uint64_t *chunk;

    (void)place;
    while ((chunk = take(&hashed))) {
        int known;

        pthread_mutex_lock(&seen_mutex);
        known = seen[chunk[0] % SEEN] == chunk[0];
        seen[chunk[0] % SEEN] = chunk[0];
        pthread_mutex_unlock(&seen_mutex);
        if (!known) {
            size_t out = 1;

            /* Runs of the same word become one. */
            for (size_t i = 2; i < CHUNK / sizeof *chunk; i++)
                if (chunk[i] != chunk[i - 1])
                    chunk[out++] = churn(chunk[i], 60);
        }
        put(&packed, chunk);
    }
    leave(&packed);
    return NULL;
}

static void *run_collect(void *place)
{
    uint64_t *chunk;
    long round = 0;

    (void)place;
    while ((chunk = take(&packed))) {
        free(chunk);
        count(++round);
    }
    return NULL;
}

static void *run_make(void *place)
{
    uint64_t seed = 1;

    (void)place;
    for (long round = 0; round < rounds; round++) {
        uint64_t *chunk = malloc(CHUNK), first;

        if (chunk == NULL)
            die("malloc");
        /* One in four has been there before. */
        seed = churn(seed, 5);
        first = round % 4 ? seed : 88172645463325252u;
        for (size_t i = 0; i < CHUNK / sizeof *chunk; i++)
            chunk[i] = first + i / 8;
        put(&made, chunk);
    }
    leave(&made);
    return NULL;
}

static void begin(pthread_t *thread, void *(*run)(void *), long place)
{
    errno = pthread_create(thread, NULL, run, (void *)place);
    if (errno)
        die("pthread_create");
}

static long pipeline(pthread_t *started)
{
    struct queue *queues[] = {&made, &hashed, &packed};
    long stage = threads > 2 ? (threads - 1) / 2 : 1, used = 0;

    for (int i = 0; i < 3; i++) {
        pthread_mutex_init(&queues[i]->mutex, NULL);
        pthread_cond_init(&queues[i]->changed, NULL);
    }
    made.feeders = 1;
    hashed.feeders = packed.feeders = stage;
    begin(&started[used++], run_make, 0);
    for (long i = 0; i < stage; i++) {
        begin(&started[used++], run_hash, i);
        begin(&started[used++], run_pack, i);
    }
    begin(&started[used++], run_collect, 0);
    return used;
}

static long whole(const char *name, const char *text, long most)
{
    char *rest;
    long value = strtol(text, &rest, 10);

    if (*text == '\0' || *rest != '\0' || value < 1 || value > most) {
        fprintf(stderr, "vsched-work: %s: %s is not a whole number of "
                "1..%ld\n", name, text, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    void *(*run)(void *) = NULL;
    pthread_t started[MOST_THREADS + 3];
    long used = 0;
    double began_s = now_s();

    if (argc == 4 && !strcmp(argv[1], "locks"))
        run = run_locks;
    else if (argc == 4 && !strcmp(argv[1], "memory"))
        run = run_memory;
    else if (argc == 4 && !strcmp(argv[1], "spin"))
        run = run_spin;
    else if (argc != 4 || strcmp(argv[1], "pipeline")) {
        fputs(USAGE, stderr);
        return 2;
    }
    threads = whole("THREADS", argv[2], MOST_THREADS);
    rounds = whole("ROUNDS", argv[3], 1000000000);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i].mutex, NULL);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    if (run == NULL)
        used = pipeline(started);
    else
        for (; used < threads; used++)
            begin(&started[used], run, used);
    for (long i = 0; i < used; i++)
        pthread_join(started[i], NULL);
    printf("{\"work\": \"%s\", \"rounds\": %ld, \"seconds\": %.3f}\n",
           argv[1], atomic_load(&done), now_s() - began_s);
    return 0;
}
