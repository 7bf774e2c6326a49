/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_db.h"

#define STATEMENT_ROWS 64 /* in one INSERT */

/* "N", "I<number>;" or "T<length>:<bytes>" */
static void add_value(struct str *s, const struct value *v)
{
	size_t n = v->type == VALUE_TEXT ? strlen(v->s) : 0, room = 3 * n + 1; /* U+FFFD for each bad byte */
	char *clean;

	if (v->type == VALUE_INT) {
		str__fmt(s, "I%lld;", (long long)v->i);
		return;
	}
	if (v->type == VALUE_NULL) {
		str__add(s, "N");
		return;
	}
	clean = malloc(room);
	if (!clean) {
		s->oom = true;
		return;
	}
	n = utf8__sanitize(clean, room, v->s, n);
	str__fmt(s, "T%zu:", n);
	str__add_n(s, clean, n);
	free(clean);
}

int rows__put(struct rows *r, enum store_table t, const struct value *values, int n)
{
	struct row_hdr hdr = {.table = t};
	size_t before = r->text.len;

	str__add_n(&r->text, (const char *)&hdr, sizeof(hdr));
	for (int i = 0; i < n; i++)
		add_value(&r->text, &values[i]);
	str__add_n(&r->text, "", 1);
	if (r->text.oom) {
		r->text.oom = false;
		r->text.len = before;
		return -ENOMEM;
	}
	hdr.bytes = (u32)(r->text.len - before - sizeof(hdr));
	memcpy(r->text.s + before, &hdr, sizeof(hdr));
	r->n++;
	return 0;
}

const char *rows__next(const struct rows *r, size_t *at, enum store_table *t)
{
	struct row_hdr hdr;
	const char *text;

	if (*at >= r->text.len)
		return NULL;
	memcpy(&hdr, r->text.s + *at, sizeof(hdr));
	text = r->text.s + *at + sizeof(hdr);
	*t = hdr.table;
	*at += sizeof(hdr) + hdr.bytes;
	return text;
}

void rows__clear(struct rows *r)
{
	str__clear(&r->text);
	r->n = 0;
}

void rows__free(struct rows *r)
{
	str__free(&r->text);
	r->n = 0;
}

/* One value at p; returns what follows it, or NULL. *stop is where its text must end, once that is read. */
static char *decode(char *p, char *end, struct value *v, char **stop)
{
	char type = *p++, *after;
	unsigned long n;

	*stop = NULL;
	*v = (struct value){.type = VALUE_NULL};
	if (type == 'N')
		return p;
	errno = 0;
	if (type == 'I') {
		*v = VALUE_I(strtoll(p, &after, 10));
		return errno || after == p || *after != ';' ? NULL : after + 1;
	}
	n = strtoul(p, &after, 10);
	if (type != 'T' || errno || after == p || *after != ':' || n > (size_t)(end - after - 1))
		return NULL;
	*v = (struct value){.type = VALUE_TEXT, .s = after + 1};
	return *stop = after + 1 + n;
}

int row__decode(enum store_table t, char *text, struct value values[ROW_MAX])
{
	char *p = text, *end = text + strlen(text), *stop, *stops[ROW_MAX];
	int n, want = schema__columns(t);

	for (n = 0; n < want; n++) {
		p = p < end ? decode(p, end, &values[n], &stop) : NULL;
		if (!p)
			return -EBADMSG;
		stops[n] = stop;
	}
	if (p != end)
		return -EBADMSG;
	for (n = 0; n < want; n++)
		if (stops[n])
			*stops[n] = 0; /* where the next value's type stood */
	return 0;
}

/* ---- into the tables ---- */

struct batch {
	struct db *db;
	enum store_table table;
	int rows, columns;
	struct value values[STATEMENT_ROWS * ROW_MAX];
};

static int insert(struct batch *b)
{
	char *sql;
	int err;

	if (!b->rows)
		return 0;
	sql = schema__insert(b->table, b->rows);
	if (!sql)
		return -ENOMEM;
	err = b->db->ops->run(b->db, sql, b->values, b->rows * b->columns, NULL, NULL);
	free(sql);
	b->rows = 0;
	return err;
}

static int add(struct batch *b, enum store_table t, char *text)
{
	int err = t != b->table || b->rows == STATEMENT_ROWS ? insert(b) : 0;

	if (err)
		return err;
	b->table = t;
	b->columns = schema__columns(t);
	err = row__decode(t, text, b->values + b->rows * b->columns);
	b->rows += !err;
	return err;
}

static int insert_all(struct batch *b, const struct rows *r, char *copy)
{
	enum store_table t;
	const char *text;
	size_t at = 0;
	int err = 0;

	while (!err && (text = rows__next(r, &at, &t)))
		err = add(b, t, copy + (text - r->text.s));
	return err ? err : insert(b);
}

int rows__insert(const struct rows *r, struct db *db)
{
	struct batch *b;
	char *copy;
	int err;

	if (!r->n)
		return 0;
	b = calloc(1, sizeof(*b));
	copy = malloc(r->text.len); /* decoding changes it, and it may have to be sent again */
	err = b && copy ? db->ops->begin(db) : -ENOMEM;
	if (err)
		goto cleanup;
	memcpy(copy, r->text.s, r->text.len);
	b->db = db;
	err = insert_all(b, r, copy);
	if (!err)
		err = db->ops->commit(db);
	if (err)
		db->ops->rollback(db);
cleanup:
	free(copy);
	free(b);
	return err;
}
