/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What every HTML page of ours keeps, whatever the game is called.
 */
#ifndef REDFRAME_TEST_PAGE_FIXTURE_H
#define REDFRAME_TEST_PAGE_FIXTURE_H

#include <string.h>

/* every < begins a tag, tags close in order, attributes hold no raw < or & that is no reference */
static inline void check_tags(const char *p)
{
	const char *open[64], *end;
	int depth = 0;

	for (p = strchr(p, '<'); p; p = strchr(end, '<')) {
		end = strchr(p, '>');
		assert_non_null(end);
		assert_true(!memchr(p + 1, '<', (size_t)(end - p)));
		if (p[1] == '?' || p[1] == '!' || end[-1] == '/' || !strncmp(p, "<meta ", 6))
			continue;
		if (p[1] == '/') {
			size_t n = (size_t)(end - p - 2);

			assert_true(depth > 0 && !strncmp(open[--depth] + 1, p + 2, n));
		} else {
			assert_true(depth < 64);
			open[depth++] = p;
		}
	}
	assert_int_equal(depth, 0);
}

/* no script, no address outside of the page, and it follows dark mode */
static inline void check_page(const char *html)
{
	check_tags(html);
	assert_null(strstr(html, "<script"));
	assert_null(strstr(html, "http://"));
	assert_null(strstr(html, "https://"));
	assert_null(strstr(html, "href=\"javascript:"));
	assert_non_null(strstr(html, "default-src 'none'"));
	assert_non_null(strstr(html, "prefers-color-scheme:dark"));
	assert_non_null(strstr(html, "<details open>"));
}

#endif
