/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a test driver tells a soak while it runs: which scene the game shows. Through a socket in the soak's directory
 * (redframe mark) or a file's first line (--scene-file). Whatever comes is hostile until it is in a SCENE record, which
 * the model makes safe.
 */
#ifndef REDFRAME_SOAK_CONTROL_H
#define REDFRAME_SOAK_CONTROL_H

#include <limits.h>

#include "common.h"

#define CONTROL_NAME      "control"
#define CONTROL_SCENE_MAX 63 /* bytes of a scene's name */

struct control {
	int socket; /* -1: none */
	char path[PATH_MAX];
	const char *file; /* NULL: none */
	u64 file_seen;    /* what identifies its content: time and size */
	char file_scene[CONTROL_SCENE_MAX + 1];
};

/* dir/control, for the one who owns the directory. 0 or -errno: then marks are not heard, and the rest goes on. */
int control__open(struct control *c, const char *dir, const char *scene_file);
/* A scene that began since: false if none. Never blocks. */
bool control__scene(struct control *c, char scene[CONTROL_SCENE_MAX + 1]);
void control__close(struct control *c);
/* The other end. 0 or -errno. */
int control__send(const char *dir, const char *scene);

#endif
