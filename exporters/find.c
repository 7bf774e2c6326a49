/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "exporter.h"
#include "strings.h"

static const struct exporter_ops *const exporters[] = {
	&exporter_perfetto, &exporter_json, &exporter_text, &exporter_csv, &exporter_html};

const struct exporter_ops *exporter__find(const char *name, const char *path)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(exporters); i++)
		if (name ? !strcmp(name, exporters[i]->name) : path && text__ends_with(path, exporters[i]->suffix))
			return exporters[i];
	return NULL;
}
