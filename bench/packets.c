/* SPDX-License-Identifier: GPL-2.0-only
 *
 * packets TRACE…: how many packets are in Perfetto traces as redframe writes them, those in compressed packets too.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PACKET     1  /* of Trace */
#define COMPRESSED 50 /* of TracePacket: deflated, again a Trace */

struct bytes {
	const unsigned char *at, *end;
};

static bool varint(struct bytes *b, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; b->at < b->end && shift < 64; shift += 7) {
		*v |= (uint64_t)(*b->at & 0x7f) << shift;
		if (!(*b->at++ & 0x80))
			return true;
	}
	return false;
}

/* The next field that holds bytes, as all of Trace's do; what else a packet begins with is no compressed one. */
static bool field(struct bytes *b, uint64_t *number, struct bytes *value)
{
	uint64_t tag, len;

	if (!varint(b, &tag) || (tag & 7) != 2 || !varint(b, &len) || len > (uint64_t)(b->end - b->at))
		return false;
	*number = tag >> 3;
	*value = (struct bytes){b->at, b->at + len};
	b->at += len;
	return true;
}

static long count(struct bytes trace);

static long count_deflated(struct bytes z)
{
	static unsigned char inflated[16 << 20];
	uLongf len = sizeof(inflated);

	if (uncompress(inflated, &len, z.at, (uLong)(z.end - z.at)) != Z_OK)
		return -1;
	return count((struct bytes){inflated, inflated + len});
}

static long count(struct bytes trace)
{
	struct bytes packet, z;
	uint64_t number;
	long n = 0, more;

	while (trace.at < trace.end) {
		if (!field(&trace, &number, &packet) || number != PACKET)
			return -1;
		if (!field(&packet, &number, &z) || number != COMPRESSED) {
			n++;
			continue;
		}
		more = count_deflated(z);
		if (more < 0)
			return -1;
		n += more;
	}
	return n;
}

static long count_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	unsigned char *all = NULL;
	long size, n = -1;

	if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		all = malloc((size_t)size + 1);
		if (all && fread(all, 1, (size_t)size, f) == (size_t)size)
			n = count((struct bytes){all, all + size});
	}
	free(all);
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	long total = 0;

	for (int i = 1; i < argc; i++) {
		long n = count_file(argv[i]);

		if (n < 0)
			return fprintf(stderr, "packets: %s is no trace\n", argv[i]), 1;
		total += n;
	}
	printf("%ld\n", total);
	return 0;
}
