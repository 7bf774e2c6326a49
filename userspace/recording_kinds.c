/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "events_desc.h"
#include "recording_kinds.h"

_Static_assert(sizeof(struct kind_entry) == 8 && sizeof(struct kind_field) == 4, "on-disk format");

static void add_string(struct str *out, const char *s)
{
	str__add_n(out, s, strlen(s) + 1);
}

static void encode(struct str *out, u8 id, const struct ev_desc *d)
{
	struct kind_entry entry = {.id = id, .n_fields = (u8)d->n_fields, .size = d->size};
	size_t start = out->len;
	int i;

	str__add_n(out, (const char *)&entry, sizeof(entry));
	for (i = 0; i < d->n_fields; i++) {
		struct kind_field f = {d->fields[i].offset, d->fields[i].size, d->fields[i].is_signed};

		str__add_n(out, (const char *)&f, sizeof(f));
	}
	add_string(out, d->name);
	add_string(out, class_names[d->class]);
	add_string(out, shape_names[d->shape]);
	add_string(out, d->cause == CAUSE_NONE ? "" : cause_names[d->cause]);
	add_string(out, d->doc);
	add_string(out, d->has_text ? d->text_name : "");
	for (i = 0; i < d->n_fields; i++) {
		add_string(out, d->fields[i].name);
		add_string(out, unit_names[d->fields[i].unit]);
	}
	while (!out->oom && out->len % 8)
		str__add_n(out, "", 1);
	if (out->oom)
		return;
	entry.bytes = (u32)(out->len - start);
	memcpy(out->s + start, &entry, sizeof(entry));
}

u32 kinds__encode(struct str *out)
{
	u32 n = 0, id;

	for (id = 0; id < 256; id++) {
		if (!ev__desc((u8)id))
			continue;
		encode(out, (u8)id, ev__desc((u8)id));
		n++;
	}
	return n;
}

int kinds__decode(const char *list, size_t len, u32 n, u16 sizes[256])
{
	struct kind_entry e;
	u32 i;

	for (i = 0; i < n; i++) {
		if (len < sizeof(e))
			return -EBADMSG;
		memcpy(&e, list, sizeof(e));
		if (e.bytes < sizeof(e) + e.n_fields * sizeof(struct kind_field) || e.bytes > len || e.bytes % 8)
			return -EBADMSG;
		if (e.size < sizeof(struct ev_hdr) || e.size % 8 || e.size > EV_MAX_BYTES || sizes[e.id])
			return -EBADMSG;
		sizes[e.id] = e.size;
		list += e.bytes;
		len -= e.bytes;
	}
	return 0;
}
