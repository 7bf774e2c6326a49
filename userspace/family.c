// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "maps.h"

struct entry {
	u32 tgid, parent;
};

static bool read_entry(u32 tgid, struct entry *e)
{
	char path[64], *text, *p, state = 'Z';
	u32 parent = 0;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	text = proc__read(path, 4096, NULL);
	p = text ? strrchr(text, ')') : NULL; /* the name may hold anything */
	ok = p && sscanf(p + 1, " %c %u", &state, &parent) == 2 && state != 'Z' && state != 'X';
	free(text);
	*e = (struct entry){tgid, parent};
	return ok;
}

static struct entry *read_all(int *n)
{
	DIR *dir = opendir("/proc");
	struct entry *v = NULL;
	struct dirent *d;
	int cap = 0;

	*n = 0;
	while (dir && (d = readdir(dir))) {
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		if (*n == cap) {
			struct entry *more = reallocarray(v, (size_t)cap + 512, sizeof(*v));

			if (!more)
				break;
			v = more;
			cap += 512;
		}
		*n += read_entry((u32)strtoul(d->d_name, NULL, 10), &v[*n]);
	}
	if (dir)
		closedir(dir);
	return v;
}

int family__list(u32 root, u32 *tgids, int max)
{
	int n, found = 0, looked_at = -1;
	struct entry *all = read_all(&n);

	/* generation by generation: whose parent is the root, then whose parent is one of those found */
	while (looked_at < found && found < max) {
		u32 parent = looked_at < 0 ? root : tgids[looked_at];

		for (int i = 0; i < n && found < max; i++)
			if (all[i].parent == parent && all[i].tgid != parent && all[i].tgid != root)
				tgids[found++] = all[i].tgid;
		looked_at++;
	}
	free(all);
	return found;
}
