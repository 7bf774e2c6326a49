// SPDX-License-Identifier: GPL-2.0-only
/* record: capture, then the same replay that explain and export use. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "afterwards.h"
#include "exporter.h"
#include "log.h"
#include "output.h"
#include "record.h"
#include "session.h"
#include "strings.h"

struct outputs {
	char recording[PATH_MAX]; /* "" where only the trace is kept */
	char trace[PATH_MAX];     /* "" for none */
	int fd;                   /* of the recording */
	bool made;
};

/* A game's name as a part of a file name: the game chose it. */
static void file_name(char *out, size_t size, const char *name)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++)
		out[n++] = strchr("/ \\'\"*?$`<>|&;()[]{}!", *name) || (unsigned char)*name < 0x20 ? '_' : *name;
	out[n] = 0;
	if (!n || out[0] == '.' || out[0] == '-')
		snprintf(out, size, "game");
}

/* A recording that is called x.json would be taken for what it is not. */
static int check_output(const struct record_options *o)
{
	const struct exporter_ops *format = o->output ? exporter__find(NULL, o->output) : NULL;

	if (format && format != &exporter_perfetto) {
		log_err("-o %s: record writes a recording (x.redframe) or its trace (x.pftrace); "
			"'redframe export RECORDING -o %s' makes this of a recording",
			o->output, o->output);
		return -EINVAL;
	}
	if (format && o->no_trace) {
		log_err("-o %s: only the trace is written, and --no-trace leaves it out", o->output);
		return -EINVAL;
	}
	return 0;
}

static int name_outputs(struct outputs *out, const struct record_options *o, const struct target *t)
{
	time_t now = time(NULL);
	char name[64], date[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	file_name(name, sizeof(name), o->command ? basename(o->command[0]) : t->name);
	if (o->output && text__ends_with(o->output, ".pftrace"))
		snprintf(out->trace, sizeof(out->trace), "%s", o->output);
	else if (o->output)
		snprintf(out->recording, sizeof(out->recording), "%s", o->output);
	else
		snprintf(out->recording, sizeof(out->recording), "%s-%s.redframe", name, date);
	if (strlen(o->output ?: "") >= PATH_MAX - 16) {
		log_err("--output: the path is too long");
		return -ENAMETOOLONG;
	}
	if (out->recording[0] && !o->no_trace) {
		size_t n = strlen(out->recording) - (text__ends_with(out->recording, ".redframe") ? 9 : 0);

		snprintf(out->trace, sizeof(out->trace), "%.*s.pftrace", (int)n, out->recording);
	}
	return 0;
}

/* Only the trace is wanted: the recording is a file without a name beside it. */
static int open_nameless(const char *beside)
{
	char dir[PATH_MAX + 8], *slash;
	int fd;

	snprintf(dir, sizeof(dir), "%s", beside);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	fd = open(slash ? (*dir ? dir : "/") : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	snprintf(dir, sizeof(dir), "%s.XXXXXX", beside);
	fd = mkostemp(dir, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(dir);
	return fd;
}

static int open_outputs(struct outputs *out, const struct record_options *o, const struct target *t)
{
	int err = name_outputs(out, o, t);

	if (err)
		return err;
	if (out->recording[0]) {
		out->fd = output__open(out->recording, o->force);
		out->made = out->fd >= 0;
		return out->fd < 0 ? out->fd : 0;
	}
	out->fd = open_nameless(out->trace);
	if (out->fd < 0)
		log_err("create a recording beside %s: %s", out->trace, errstr(out->fd));
	return out->fd < 0 ? out->fd : 0;
}

static void say_what_it_does(const struct session *s, const struct outputs *out)
{
	log_info("recording %s (%u), frames: %s; Ctrl-C ends", s->target.name, s->target.tgid,
		s->have_frames ? s->source : "none yet");
	if (out->recording[0])
		log_debug("to %s", out->recording);
}

static int exit_status(const struct session *s, int file_error)
{
	if (file_error)
		return EXIT_NOT_MEASURED;
	if (!strcmp(s->o->frame, "none"))
		return EXIT_OK;
	if (s->end == END_GAME && !s->drain.marks)
		return EXIT_NO_TARGET;
	return s->drain.marks > 1 ? EXIT_OK : EXIT_NOT_MEASURED;
}

static void say_how_it_ended(struct session *s, int file_error)
{
	char outcome[96];

	if (file_error)
		log_err("the recording stops at %.1f s: %s; what came before is kept", (s->stop - s->start) / 1e9,
			errstr(file_error));
	if (s->end == END_GAME && s->launch.tgid) {
		for (int i = 0; i < 100 && !launch__ended(&s->launch); i++)
			usleep(10000);
		log_info("%s %s", s->o->command[0], launch__outcome(&s->launch, outcome, sizeof(outcome)));
	} else if (s->end == END_GAME) {
		log_info("%s ended", s->target.name);
	}
}

static int record(struct session *s, const struct record_options *o)
{
	struct outputs out = {.fd = -1};
	int status = session__find(s, o), err, fd;

	if (status)
		return status;
	if (open_outputs(&out, o, &s->target))
		return EXIT_USAGE;
	fd = fcntl(out.fd, F_DUPFD_CLOEXEC, 3); /* one to write, one to read back */
	status = session__attach(s, out.fd);
	if (status) {
		if (out.made)
			unlink(out.recording);
		goto cleanup;
	}
	say_what_it_does(s, &out);
	session__run(s);
	err = session__finish(s);
	say_how_it_ended(s, err);
	status = exit_status(s, err);
	err = afterwards(fd, out.recording, out.trace, o, s);
	if (err && status == EXIT_OK)
		status = EXIT_NOT_MEASURED;
cleanup:
	if (fd >= 0)
		close(fd);
	return status;
}

int verb__record(int argc, char **argv)
{
	struct record_options o;
	struct session s = {.signal_fd = -1,
		.stats_fd = -1,
		.target = {.pidfd = -1},
		.launch = {.go = -1, .error = -1},
		.stacks = {.fd = -1}};
	int err = record_options__parse(&o, argc, argv), status;

	if (!err)
		err = check_output(&o);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	status = record(&s, &o);
	session__free(&s);
	return status;
}
