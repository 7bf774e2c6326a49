// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "soak.h"
#include "soak_control.h"

/* A socket's path has 108 bytes only: it is reached through the directory's descriptor. */
static int address(struct sockaddr_un *a, int dir)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", dir, CONTROL_NAME);
	return dir < 0 ? -errno : 0;
}

static void give_to_owner(const char *path, int dir)
{
	struct stat st;

	if (!fstat(dir, &st) && !geteuid() && lchown(path, st.st_uid, st.st_gid))
		log_debug("%s: %s", path, errstr(errno));
	if (chmod(path, 0600))
		log_debug("%s: %s", path, errstr(errno));
}

int control__open(struct control *c, const char *dir, const char *scene_file)
{
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), err;
	struct sockaddr_un a;

	*c = (struct control){.socket = -1, .file = scene_file};
	snprintf(c->path, sizeof(c->path), "%s/%s", dir, CONTROL_NAME);
	err = address(&a, at);
	if (!err)
		c->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!err && (c->socket < 0 || bind(c->socket, (struct sockaddr *)&a, sizeof(a))))
		err = -errno;
	if (!err)
		give_to_owner(c->path, at);
	if (at >= 0)
		close(at);
	return err;
}

void control__close(struct control *c)
{
	if (c->socket < 0)
		return;
	close(c->socket);
	unlink(c->path);
	c->socket = -1;
}

int control__send(const char *dir, const char *scene)
{
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), to, err;
	struct sockaddr_un a;
	size_t n = strlen(scene);

	err = address(&a, at);
	if (err)
		return err;
	to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (to < 0 || sendto(to, scene, n, 0, (struct sockaddr *)&a, sizeof(a)) != (ssize_t)n)
		err = -errno;
	if (to >= 0)
		close(to);
	close(at);
	return err;
}

/* one line of a name, cut to fit */
static void take_name(char scene[CONTROL_SCENE_MAX + 1], const char *bytes, size_t n)
{
	n = min(n, (size_t)CONTROL_SCENE_MAX);
	memcpy(scene, bytes, n);
	scene[n] = 0;
	scene[strcspn(scene, "\r\n")] = 0;
}

static bool from_socket(struct control *c, char scene[CONTROL_SCENE_MAX + 1])
{
	char buf[CONTROL_SCENE_MAX + 1];
	ssize_t n = c->socket < 0 ? -1 : recv(c->socket, buf, sizeof(buf) - 1, 0);

	if (n < 0)
		return false;
	take_name(scene, buf, (size_t)n);
	return true;
}

static bool from_file(struct control *c, char scene[CONTROL_SCENE_MAX + 1])
{
	int fd = c->file ? open(c->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	char buf[256];
	struct stat st;
	ssize_t n = -1;
	u64 seen = 0;

	if (fd < 0)
		return false; /* not there yet, or no more */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		seen = (u64)st.st_mtim.tv_sec * NSEC_PER_SEC + (u64)st.st_mtim.tv_nsec + (u64)st.st_ino + 1;
		n = seen == c->file_seen ? -1 : read(fd, buf, sizeof(buf));
	}
	close(fd);
	if (n <= 0) /* empty: it is being written */
		return false;
	c->file_seen = seen;
	take_name(scene, buf, (size_t)n);
	if (!strcmp(scene, c->file_scene))
		return false;
	memcpy(c->file_scene, scene, sizeof(c->file_scene));
	return true;
}

bool control__scene(struct control *c, char scene[CONTROL_SCENE_MAX + 1])
{
	return from_socket(c, scene) || from_file(c, scene);
}

/* ---- redframe mark ---- */

struct mark_options {
	const char *dir;
};

static const struct option_row rows[] = {
	{"output", 'o', OPT_TEXT, offsetof(struct mark_options, dir), "DIR", "the soak's directory"},
	{},
};

static const struct verb mark = {
	.name = "mark",
	.synopsis = "-o DIR SCENE",
	.about = "Tells a running soak that the game has entered a scene.",
	.rows = rows,
	.examples = "  redframe mark -o soak harbour\n",
};

int verb__mark(int argc, char **argv)
{
	struct mark_options o = {};
	int n, command, err = options__parse(&mark, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n != 1 || !o.dir || !argv[0][0]) {
		log_err("mark: give the soak's directory and the scene: redframe mark -o DIR SCENE");
		return EXIT_USAGE;
	}
	if (strlen(argv[0]) > CONTROL_SCENE_MAX)
		log_warn("the scene's name is cut to %d bytes", CONTROL_SCENE_MAX);
	err = control__send(o.dir, argv[0]);
	if (!err)
		return EXIT_OK;
	log_err("mark: %s/%s: %s", o.dir, CONTROL_NAME,
		err == -ECONNREFUSED || err == -ENOENT ? "no soak runs there" : errstr(err));
	return EXIT_NO_TARGET;
}
