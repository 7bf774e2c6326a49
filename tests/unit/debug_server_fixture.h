/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A server of debug data, as debuginfod is one, that has a single file; or that takes requests and never answers.
 */
#ifndef REDFRAME_DEBUG_SERVER_FIXTURE_H
#define REDFRAME_DEBUG_SERVER_FIXTURE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct debug_server {
	char url[64];
	char file[512];
	bool silent;
	int fd;
	atomic_int requests;
	pthread_t thread;
};

static inline void debug_server__answer(const struct debug_server *s, int to, const char *request)
{
	int fd = strstr(request, "/debuginfo ") ? open(s->file, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st = {};
	off_t at = 0;

	if (fd >= 0 && !fstat(fd, &st))
		dprintf(to, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\nConnection: close\r\n\r\n",
			(long long)st.st_size);
	else
		dprintf(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	while (fd >= 0 && sendfile(to, fd, &at, (size_t)(st.st_size - at)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

static inline void *debug_server__serve(void *arg)
{
	struct debug_server *s = arg;
	int to;

	while ((to = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		char request[4096] = "";
		size_t n = 0;
		ssize_t got;

		while (n < sizeof(request) - 1 && !strstr(request, "\r\n\r\n") &&
			(got = read(to, request + n, sizeof(request) - 1 - n)) > 0)
			n += (size_t)got;
		s->requests++;
		if (!s->silent)
			debug_server__answer(s, to, request);
		else /* until the other side gives up */
			while (read(to, request, sizeof(request)) > 0)
				;
		close(to);
	}
	return NULL;
}

static inline void debug_server__start(struct debug_server *s, const char *file, bool silent)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);

	*s = (struct debug_server){.silent = silent, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	snprintf(s->file, sizeof(s->file), "%s", file);
	assert_true(s->fd >= 0 && !bind(s->fd, (struct sockaddr *)&addr, len) && !listen(s->fd, 16));
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", ntohs(addr.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, debug_server__serve, s), 0);
}

static inline void debug_server__stop(struct debug_server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

#endif
