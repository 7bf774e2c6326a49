/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The tables: docs/store.md says what the columns mean. Only what PostgreSQL, engines that speak its protocol, and
 * SQLite all accept: no sequence, no trigger, no default, and the run's id first in every key, to distribute by.
 */
#include <errno.h>

#include "store_db.h"
#include "strings.h"

/* K: of the key, I: integer, T: text */
static const struct {
	const char *name;
	const char *columns[ROW_MAX];
} tables[TABLE_COUNT] = {
	[TABLE_RUNS] = {"runs", {"KT run_id", "I started_ms", "T kind", "T game", "T path", "T version"}},
	[TABLE_META] = {"run_meta", {"KT run_id", "KT name", "T value"}},
	[TABLE_BLOCKS] = {"blocks",
		{"KT run_id", "KI block", "T scene", "I warm_up", "I start_ms", "I dur_ns", "I frames", "I slow",
			"I unsure", "I lost", "I p50_ns", "I p99_ns", "I max_ns", "I over_budget_ns", "I cold_bytes",
			"I allocs", "I alloc_bytes", "I faults"}},
	[TABLE_COUNTS] = {"frame_counts", {"KT run_id", "KI block", "KI bucket", "I frames"}},
	[TABLE_CAUSES] = {"block_causes",
		{"KT run_id", "KI block", "KT cause", "I total_ns", "I hitches", "I excess_ns"}},
	[TABLE_FINGERPRINTS] = {"fingerprints",
		{"KT run_id", "KT fingerprint", "T cause", "T pattern", "T what", "T who", "T place"}},
	[TABLE_HITCHES] = {"hitches", {"KT run_id", "KI block", "KT fingerprint", "I hitches", "I excess_ns",
					      "I worst_ns", "I worst_frame", "I worst_ms", "T sentence", "T trace"}},
	[TABLE_MEMORY] = {"memory", {"KT run_id", "KI at_ms", "T scene", "I rss", "I heap", "I mapped", "I mappings"}},
	[TABLE_COUNTERS] = {"counters", {"KT run_id", "KT name", "I value"}},
	[TABLE_NOTES] = {"notes", {"KT run_id", "KI number", "I at_ms", "T note"}},
	[TABLE_CHECKS] = {"checks", {"KT run_id", "KT scene", "KT name", "T bound", "I failed", "T found"}},
	[TABLE_ENDS] = {"run_ends", {"KT run_id", "I ended_ms", "I status", "T reason"}},
};

static void add_table(struct str *s, enum store_table t)
{
	const char *const *columns = tables[t].columns;

	str__fmt(s, "CREATE TABLE IF NOT EXISTS %s (", tables[t].name);
	for (int i = 0; columns[i]; i++) {
		bool key = columns[i][0] == 'K';

		str__fmt(s, "%s %s%s, ", columns[i] + (key ? 3 : 2), columns[i][key] == 'I' ? "BIGINT" : "TEXT",
			key ? " NOT NULL" : "");
	}
	str__add(s, "PRIMARY KEY (");
	for (int i = 0; columns[i] && columns[i][0] == 'K'; i++)
		str__fmt(s, "%s%s", i ? ", " : "", columns[i] + 3);
	str__add(s, "))");
}

int schema__create(struct db *db)
{
	struct str s = {0};
	int err = 0;

	for (int t = 0; t < TABLE_COUNT && !err; t++) {
		str__clear(&s);
		add_table(&s, t);
		err = s.oom ? -ENOMEM : db->ops->run(db, s.s, NULL, 0, NULL, NULL);
	}
	str__free(&s);
	return err;
}

int schema__columns(enum store_table t)
{
	int n = 0;

	while (tables[t].columns[n])
		n++;
	return n;
}

char *schema__insert(enum store_table t, int rows)
{
	int columns = schema__columns(t);
	struct str s = {0};

	str__fmt(&s, "INSERT INTO %s VALUES ", tables[t].name);
	for (int i = 0; i < rows * columns; i++)
		str__fmt(&s, "%s$%d%s",
			i % columns ? ", "
			: i         ? ", ("
				    : "(",
			i + 1, i % columns == columns - 1 ? ")" : "");
	str__add(&s, " ON CONFLICT DO NOTHING");
	if (s.oom)
		str__free(&s);
	return s.s;
}
