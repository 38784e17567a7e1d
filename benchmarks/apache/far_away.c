/* far_away DELAY_US LISTEN:TARGET...   Forwards ports of 127.0.0.1; every byte comes DELAY_US later, in either direction.

   One thread a direction of a connection: it reads, notes when the bytes came, and another writes them when it is time.
   Prints "ready" when it listens. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE (256 * 1024)
#define HELD (8 * 1024 * 1024) /* bytes on their way in one direction; above it reading waits */

struct piece { struct piece *next; struct timespec due; size_t size; char bytes[]; };

struct way { /* one direction of a connection */
    int from, to;
    int *users; /* of both sockets */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct piece *first, **last;
    size_t held;
    int ended, broken;
};

static long delay_us;
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sockaddr_in local(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void leave(struct way *way) {
    pthread_mutex_lock(&users_lock);
    int left = --*way->users;
    pthread_mutex_unlock(&users_lock);
    if (!left) { close(way->from); close(way->to); free(way->users); }
    free(way);
}

static void *deliver(void *given) {
    struct way *way = given;
    for (;;) {
        pthread_mutex_lock(&way->lock);
        while (!way->first && !way->ended) pthread_cond_wait(&way->changed, &way->lock);
        struct piece *piece = way->first;
        if (piece && !(way->first = piece->next)) way->last = &way->first;
        pthread_mutex_unlock(&way->lock);
        if (!piece) break;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &piece->due, NULL)) {}
        for (size_t sent = 0; sent < piece->size && !way->broken;) {
            ssize_t n = send(way->to, piece->bytes + sent, piece->size - sent, MSG_NOSIGNAL);
            if (n <= 0) way->broken = 1; else sent += n;
        }
        pthread_mutex_lock(&way->lock);
        way->held -= piece->size;
        pthread_cond_signal(&way->changed);
        pthread_mutex_unlock(&way->lock);
        free(piece);
    }
    shutdown(way->to, SHUT_WR);
    return NULL;
}

static void *take(void *given) {
    struct way *way = given;
    char *buffer = malloc(PIECE);
    pthread_t writer;
    if (!buffer || pthread_create(&writer, NULL, deliver, way)) exit(1);
    ssize_t n;
    while (!way->broken && (n = recv(way->from, buffer, PIECE, 0)) > 0) {
        struct piece *piece = malloc(sizeof *piece + n);
        if (!piece) exit(1);
        clock_gettime(CLOCK_MONOTONIC, &piece->due);
        piece->due.tv_nsec += delay_us * 1000;
        piece->due.tv_sec += piece->due.tv_nsec / 1000000000;
        piece->due.tv_nsec %= 1000000000;
        piece->next = NULL;
        piece->size = n;
        memcpy(piece->bytes, buffer, n);
        pthread_mutex_lock(&way->lock);
        while (way->held > HELD && !way->broken) pthread_cond_wait(&way->changed, &way->lock);
        *way->last = piece;
        way->last = &piece->next;
        way->held += n;
        pthread_cond_signal(&way->changed);
        pthread_mutex_unlock(&way->lock);
    }
    free(buffer);
    pthread_mutex_lock(&way->lock);
    way->ended = 1;
    pthread_cond_signal(&way->changed);
    pthread_mutex_unlock(&way->lock);
    pthread_join(writer, NULL);
    leave(way);
    return NULL;
}

static void forward(int from, int to, int *users) {
    struct way *way = calloc(1, sizeof *way);
    if (!way) exit(1);
    way->from = from, way->to = to, way->users = users, way->last = &way->first;
    pthread_mutex_init(&way->lock, NULL);
    pthread_cond_init(&way->changed, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, take, way)) exit(1);
    pthread_detach(thread);
}

struct port { int listener, target; };

static void *serve(void *given) {
    struct port *port = given;
    for (;;) {
        int one = 1, near = accept(port->listener, NULL, NULL), far = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = local(port->target);
        if (near < 0 || far < 0 || connect(far, (struct sockaddr *)&at, sizeof at)) {
            if (near >= 0) close(near);
            if (far >= 0) close(far);
            continue;
        }
        setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        int *users = malloc(sizeof *users);
        if (!users) exit(1);
        *users = 2;
        forward(near, far, users);
        forward(far, near, users);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    signal(SIGPIPE, SIG_IGN);
    delay_us = atol(words[1]);
    pthread_t thread;
    for (int i = 2; i < count; i++) {
        struct port *port = malloc(sizeof *port);
        int listen_at, one = 1;
        if (!port || sscanf(words[i], "%d:%d", &listen_at, &port->target) != 2) return 2;
        port->listener = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = local(listen_at);
        setsockopt(port->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(port->listener, (struct sockaddr *)&at, sizeof at) || listen(port->listener, 128)) return 1;
        if (pthread_create(&thread, NULL, serve, port)) return 1;
    }
    puts("ready");
    fflush(stdout);
    pthread_join(thread, NULL);
    return 0;
}
