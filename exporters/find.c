/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "exporter.h"

static const struct exporter_ops *const exporters[] = {&exporter_perfetto, &exporter_json, &exporter_text};

static bool ends_with(const char *path, const char *suffix)
{
	size_t n = strlen(path), s = strlen(suffix);

	return n > s && !strcmp(path + n - s, suffix);
}

const struct exporter_ops *exporter__find(const char *name, const char *path)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(exporters); i++)
		if (name ? !strcmp(name, exporters[i]->name) : path && ends_with(path, exporters[i]->suffix))
			return exporters[i];
	return NULL;
}
