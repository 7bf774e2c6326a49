/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Recordings written by hand, for tests: one record a line, fields by their names in events.def.
 *
 *	# comment
 *	TS TID CPU KIND field=value … text="…"
 *	16.7ms 100 0 file_read dur=2ms offset=0 ret=4096 dev=8:1 ino=7 fd=3 sys=pread64
 *	0 100 0 path ino=7 dev=8:1 mode=0x81a4 parts="a.bin\0data\0"
 *
 * Times (ts and NS fields) take ns, us, ms, s; sizes take K, M, G; named values take their names, flags joined by |
 * ("MAJOR|WRITE"); "-ENOENT"; "-" is all ones; fields left out are 0 (FRAME.number and offsets: all ones). A trailing
 * line "!incomplete" leaves the clean-end flag out.
 */
#ifndef REDFRAME_TEST_RECFILE_H
#define REDFRAME_TEST_RECFILE_H

/* 0, or -errno after a message with the line on stderr (-EINVAL: a line that is no record) */
int recfile__compile(const char *text_path, const char *out_path);
/* the same from text in memory; the fd of a memfd that holds the recording, at its begin, or -errno */
int recfile__from_string(const char *text);

#endif
