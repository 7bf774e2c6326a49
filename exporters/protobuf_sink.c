// SPDX-License-Identifier: GPL-2.0-only
#include "protobuf.h"

#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define BATCH_BYTES   (256u << 10) /* written, and deflated, together */
#define DEFLATE_LEVEL 1            /* level 2 takes nearly twice as long, for a tenth less */

struct pb_writer {
	int fd;
	u32 field, deflated;
	struct libdeflate_compressor *deflate;
	u8 *out;
	size_t out_cap;
	u64 written;

	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under lock, and the batch whose length is not 0 is the thread's */
	struct pb batch;
	bool stop;
	int error;
};

static int write_all(struct pb_writer *w, const u8 *p, size_t n)
{
	while (n) {
		ssize_t done = write(w->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
		w->written += (u64)done;
	}
	return 0;
}

/* Sent as FIELD { DEFLATED: bytes }, whose two heads are written by hand before what deflate made. */
static int write_deflated(struct pb_writer *w, const struct pb *batch)
{
	u8 inner[2 * PB_VARINT_MAX], head[4 * PB_VARINT_MAX];
	size_t n_inner, n, bytes;
	int err;

	bytes = libdeflate_zlib_compress(w->deflate, batch->buf, batch->len, w->out, w->out_cap);
	if (!bytes)
		return -EIO;
	n_inner = pb__put_varint(inner, (u64)w->deflated << 3 | PB_BYTES);
	n_inner += pb__put_varint(inner + n_inner, bytes);
	n = pb__put_varint(head, (u64)w->field << 3 | PB_BYTES);
	n += pb__put_varint(head + n, n_inner + bytes);
	for (size_t i = 0; i < n_inner; i++)
		head[n++] = inner[i];
	err = write_all(w, head, n);
	return err ? err : write_all(w, w->out, bytes);
}

static int write_batch(struct pb_writer *w, const struct pb *batch)
{
	return w->deflated ? write_deflated(w, batch) : write_all(w, batch->buf, batch->len);
}

static void *work(void *arg)
{
	struct pb_writer *w = arg;
	int err;

	pthread_mutex_lock(&w->lock);
	while (true) {
		while (!w->batch.len && !w->stop)
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->batch.len || w->stop)
			break;
		pthread_mutex_unlock(&w->lock);
		err = w->error ? 0 : write_batch(w, &w->batch);
		pthread_mutex_lock(&w->lock);
		if (err)
			w->error = err;
		w->batch.len = 0;
		pthread_cond_signal(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* signals are for the thread that made this one */
static bool start_thread(struct pb_writer *w)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static void stop_thread(struct pb_writer *w)
{
	if (!w->threaded)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}

static bool open_deflate(struct pb_writer *w, size_t cap)
{
	w->deflate = libdeflate_alloc_compressor(DEFLATE_LEVEL);
	if (!w->deflate)
		return false;
	w->out_cap = libdeflate_zlib_compress_bound(w->deflate, cap);
	w->out = malloc(w->out_cap);
	return w->out;
}

static struct pb_writer *writer__new(int fd, u32 field, u32 deflated, size_t cap)
{
	struct pb_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = fd;
	w->field = field;
	w->deflated = deflated;
	w->batch.cap = cap;
	w->batch.buf = malloc(cap);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	return w;
}

int pb_sink__open(struct pb_sink *s, int fd, u32 field, u32 deflated)
{
	*s = (struct pb_sink){.field = field};
	s->pb.cap = BATCH_BYTES + PB_SINK_MAX;
	s->pb.buf = malloc(s->pb.cap);
	s->writer = writer__new(fd, field, deflated, s->pb.cap);
	if (!s->pb.buf || !s->writer || !s->writer->batch.buf || (deflated && !open_deflate(s->writer, s->pb.cap))) {
		pb_sink__close(s);
		return -ENOMEM;
	}
	s->writer->threaded = start_thread(s->writer); /* without, it is done in between */
	return 0;
}

void pb_sink__close(struct pb_sink *s)
{
	struct pb_writer *w = s->writer;

	if (w) {
		stop_thread(w);
		libdeflate_free_compressor(w->deflate);
		pthread_cond_destroy(&w->changed);
		pthread_mutex_destroy(&w->lock);
		free(w->out);
		free(w->batch.buf);
	}
	free(w);
	free(s->pb.buf);
	*s = (struct pb_sink){0};
}

/* The batch that is full for the one that is empty; wait: until all is written. */
static void hand_over(struct pb_sink *s, bool wait)
{
	struct pb_writer *w = s->writer;
	struct pb full = s->pb;

	pthread_mutex_lock(&w->lock);
	while (w->batch.len)
		pthread_cond_wait(&w->changed, &w->lock);
	s->pb = w->batch;
	w->batch = full;
	pthread_cond_signal(&w->changed);
	while (wait && w->batch.len)
		pthread_cond_wait(&w->changed, &w->lock);
	if (w->error && !s->error)
		s->error = w->error;
	pthread_mutex_unlock(&w->lock);
}

static void write_out(struct pb_sink *s, bool wait)
{
	if (s->writer->threaded) {
		hand_over(s, wait);
		return;
	}
	if (!s->error && s->pb.len)
		s->error = write_batch(s->writer, &s->pb);
	s->pb.len = 0;
}

int pb_sink__flush(struct pb_sink *s)
{
	if (!s->pb.full)
		write_out(s, true);
	return s->error;
}

u64 pb_sink__written(const struct pb_sink *s)
{
	return s->writer->written;
}

struct pb *pb_sink__begin(struct pb_sink *s)
{
	s->mark = pb__begin(&s->pb, s->field);
	return &s->pb;
}

int pb_sink__end(struct pb_sink *s)
{
	pb__end(&s->pb, s->mark);
	if (s->pb.full && !s->error)
		s->error = -EMSGSIZE;
	if (s->pb.len >= BATCH_BYTES && !s->pb.full)
		write_out(s, false);
	return s->error;
}
