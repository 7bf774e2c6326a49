/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The HTML report in a real browser: what a keyboard reaches, and whether it can be read by day and by night. Headless
 * Chromium is driven through its debugging pipe: JSON messages that end in NUL.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "export.h"
#include "json.h"
#include "run_report.h"
#include "strings.h"

#define RUN        "00000000-0000-4000-8000-000000000001"
#define KINDS      7  /* of hitches: the worst five are open */
#define PATIENCE_S 60 /* for an answer */

/* ---- a browser ---- */

struct browser {
	pid_t pid;
	int to, from, id;
	char dir[64], session[64];
	struct str heard;    /* what came after the last message */
	char *message;       /* the last, in which the answer's texts lie */
	struct json *answer; /* the last */
};

static void run_browser(const char *dir, int in, int out)
{
	char profile[128];
	int null = open("/dev/null", O_RDWR);

	snprintf(profile, sizeof(profile), "--user-data-dir=%s/profile", dir);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	/* above both numbers first: either may be the other's place */
	in = fcntl(in, F_DUPFD, 10);
	out = fcntl(out, F_DUPFD, 10);
	dup2(in, 3);
	dup2(out, 4);
	execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
		"--window-size=1000,600", profile, "about:blank", NULL);
	_exit(127);
}

static void start(struct browser *b)
{
	int in[2], out[2];

	*b = (struct browser){.dir = "/tmp/redframe-page.XXXXXX"};
	assert_non_null(mkdtemp(b->dir));
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	b->pid = fork();
	if (!b->pid) {
		setpgid(0, 0);
		run_browser(b->dir, in[0], out[1]);
	}
	setpgid(b->pid, b->pid);
	close(in[0]);
	close(out[1]);
	b->to = in[1];
	b->from = out[0];
}

static void stop(struct browser *b)
{
	char command[128];

	kill(-b->pid, SIGKILL);
	waitpid(b->pid, NULL, 0);
	close(b->to);
	close(b->from);
	str__free(&b->heard);
	json__free(b->answer);
	free(b->message);
	snprintf(command, sizeof(command), "rm -rf %s", b->dir);
	assert_int_equal(system(command), 0);
}

/* The next message, into b->message. */
static void hear(struct browser *b)
{
	struct pollfd p = {.fd = b->from, .events = POLLIN};
	char buf[4096];
	size_t n;
	ssize_t got;

	while (!b->heard.len || !memchr(b->heard.s, 0, b->heard.len)) {
		assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
		got = read(b->from, buf, sizeof(buf));
		assert_true(got > 0);
		str__add_n(&b->heard, buf, (size_t)got);
	}
	free(b->message);
	b->message = strdup(b->heard.s);
	n = strlen(b->heard.s) + 1;
	b->heard.len -= n;
	memmove(b->heard.s, b->heard.s + n, b->heard.len);
}

/* The result, valid until the next call; what else is told meanwhile is not listened to. params is JSON. */
static const struct json *ask(struct browser *b, const char *method, const char *params)
{
	struct str s = {0};

	str__fmt(&s, "{\"id\": %d, \"method\": \"%s\", \"params\": {%s}", ++b->id, method, params);
	if (b->session[0])
		str__fmt(&s, ", \"sessionId\": \"%s\"", b->session);
	str__add_n(&s, "}", 2);
	assert_int_equal(write(b->to, s.s, s.len), (ssize_t)s.len);
	str__free(&s);
	do {
		json__free(b->answer);
		hear(b);
		b->answer = json__parse(b->message);
	} while (!json__get(b->answer, "id") || (int)json__number(b->answer, "id") != b->id);
	if (json__get(b->answer, "error"))
		fail_msg("%s: %s", method, json__text(json__get(b->answer, "error"), "message"));
	return json__get(b->answer, "result");
}

/* what a script on the page says, as text; valid until the next call */
static const char *script(struct browser *b, const char *text)
{
	struct str params = {0};
	const char *said;

	str__add(&params, "\"returnByValue\": true, \"expression\": ");
	json__string(&params, text, strlen(text));
	said = json__text(json__get(ask(b, "Runtime.evaluate", params.s), "result"), "value");
	str__free(&params);
	return said;
}

static bool is(struct browser *b, const char *expression)
{
	char text[2048];

	snprintf(text, sizeof(text), "String(Boolean(%s))", expression);
	return !strcmp(script(b, text), "true");
}

static void await(struct browser *b, const char *expression)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (!is(b, expression)) {
		if (time(NULL) > until)
			fail_msg("never: %s", expression);
		usleep(20000);
	}
}

static void press(struct browser *b, const char *key, int code, const char *text)
{
	char params[256];

	snprintf(params, sizeof(params),
		"\"type\": \"%s\", \"key\": \"%s\", \"code\": \"%s\", \"windowsVirtualKeyCode\": %d%s%s%s",
		text ? "keyDown" : "rawKeyDown", key, key, code, text ? ", \"text\": \"" : "", text ?: "",
		text ? "\"" : "");
	ask(b, "Input.dispatchKeyEvent", params);
	snprintf(params, sizeof(params),
		"\"type\": \"keyUp\", \"key\": \"%s\", \"code\": \"%s\", \"windowsVirtualKeyCode\": %d", key, key,
		code);
	ask(b, "Input.dispatchKeyEvent", params);
}

/* ---- the page ---- */

static void add_kind(struct store *s, u64 key)
{
	char trace[32], text[64];

	snprintf(trace, sizeof(trace), "segment-%06llu.redframe", (unsigned long long)key);
	snprintf(text, sizeof(text), "reading level%llu.pak from disk", (unsigned long long)key);
	store__add_fingerprint(s, RUN, &(struct store_fingerprint){.key = key, .cause = CAUSE_FILE_READ, .text = text});
	store__add_hitches(s, RUN,
		&(struct store_hitches){.fingerprint = key,
			.count = 1,
			.excess_ns = 40000000 + key * 1000000,
			.worst_ns = 60000000 + key * 1000000,
			.worst_frame = key,
			.sentence = "41.2 ms reading a file from disk",
			.trace = trace});
}

static void write_page(const char *path)
{
	static u32 counts[BUCKETS];
	struct store_block b = {.scene = "harbour",
		.frames = 600,
		.slow = KINDS,
		.dur_ns = 10 * NSEC_PER_SEC,
		.max_ns = 80000000,
		.p50_ns = 16000000,
		.p99_ns = 30000000,
		.counts = counts};
	struct store *s;
	FILE *f;

	counts[bucket__of(16000000)] = 600;
	b.causes[CAUSE_FILE_READ] = (struct store_cause){.ns = 5, .hitches = KINDS, .excess_ns = 300000000};
	assert_int_equal(store__open(":memory:", &s), 0);
	store__add_run(s, RUN, &(struct store_run){.started_ms = 1700000000000, .kind = "soak", .game = "game"});
	store__add_meta(s, RUN, "meta.build", "4711");
	for (b.block = 0; b.block < 5; b.block++) {
		b.start_ms = b.block * 10000;
		store__add_block(s, RUN, &b);
	}
	for (u64 key = 1; key <= KINDS; key++)
		add_kind(s, key);
	store__add_check(
		s, RUN, &(struct store_check){.name = "frame", .limit = "frame=33 ms", .failed = true, .text = "9"});
	store__add_check(s, RUN, &(struct store_check){.name = "cold", .limit = "cold=1M", .text = "0"});
	store__add_counter(s, RUN, "lost", 0);
	store__add_note(s, RUN, 0, 5, "the game ended");
	store__add_end(s, RUN, 1700000050000, EXIT_WORSE, "a limit was crossed");
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(run_report__html(s, RUN, f), 0);
	fclose(f);
	store__close(s);
}

/* what export makes of the demo's recording: four slow frames, three of them open */
static void write_export(const char *path)
{
	char *args[] = {"examples/demo.redframe", "-q", "-o", (char *)path, NULL};

	assert_int_equal(verb__export(4, args), EXIT_OK);
}

static void open_page(struct browser *b, void (*write)(const char *path))
{
	char path[128], params[256];

	if (system("command -v chromium >/dev/null 2>&1")) {
		print_message("skipped: chromium is not installed (81 MB, so it is not in deps.txt)\n");
		skip();
	}
	start(b);
	snprintf(path, sizeof(path), "%s/page.html", b->dir);
	write(path);
	snprintf(params, sizeof(params), "\"url\": \"file://%s\"", path);
	snprintf(params, sizeof(params), "\"flatten\": true, \"targetId\": \"%s\"",
		json__text(ask(b, "Target.createTarget", params), "targetId"));
	snprintf(
		b->session, sizeof(b->session), "%s", json__text(ask(b, "Target.attachToTarget", params), "sessionId"));
	await(b, "document.readyState == 'complete' && document.querySelector('main')");
}

/* ---- the keyboard ---- */

/* All that can be used and is to be seen, in the order of the page. */
#define STOPS "[...document.querySelectorAll('summary, a[href]')].filter(e => e.checkVisibility())"

static void tab_through(void (*write)(const char *path), int expected)
{
	struct browser b;
	char at[256];
	int stops;

	open_page(&b, write);
	stops = atoi(script(&b, "String(" STOPS ".length)"));
	assert_int_equal(stops, expected);
	for (int i = 0; i < stops; i++) {
		press(&b, "Tab", 9, NULL);
		snprintf(at, sizeof(at), STOPS ".indexOf(document.activeElement) == %d", i);
		if (!is(&b, at))
			fail_msg("stop %d is not where the page has it", i);
		assert_true(is(&b, "getComputedStyle(document.activeElement).outlineStyle != 'none'")); /* to be seen */
	}
	stop(&b);
}

static void test_the_tab_key_reaches_all_that_can_be_used_in_the_order_of_the_page(void **state)
{
	tab_through(write_page, KINDS + 5 + 3); /* hitches, links of the open ones, what is known of the run */
	tab_through(write_export, 4);
}

static void test_enter_and_space_open_and_close_and_arrows_scroll(void **state)
{
	struct browser b;

	open_page(&b, write_page);
	assert_true(is(&b, "document.querySelectorAll('details[open]').length == 5"));
	assert_true(is(&b, "(document.querySelector('details:not([open]) summary').focus(), "
			   "window.chosen = document.activeElement.parentElement, !chosen.open)"));
	press(&b, "Enter", 13, "\\r");
	await(&b, "chosen.open");
	press(&b, "Enter", 13, "\\r");
	await(&b, "!chosen.open");
	press(&b, " ", 32, " ");
	await(&b, "chosen.open");
	assert_true(is(&b, "(document.activeElement.blur(), window.scrollTo(0, 0), window.scrollY == 0)"));
	press(&b, "ArrowDown", 40, NULL);
	await(&b, "window.scrollY > 0");
	press(&b, "ArrowUp", 38, NULL);
	await(&b, "window.scrollY == 0");
	stop(&b);
}

/* ---- by day and by night ---- */

/* The least contrast of a text with the page, by WCAG 2; 4.5 is asked of text that is to be read. */
static const char contrast[] =
	"(() => { const lum = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => { x /= 255;"
	" return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });"
	" return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };"
	" const page = lum(getComputedStyle(document.body).backgroundColor); let least = 99, which = '';"
	" for (const e of document.querySelectorAll('body *')) {"
	"  if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;"
	"  const style = getComputedStyle(e), l = lum(e.namespaceURI.includes('svg') ? style.fill : style.color);"
	"  const ratio = (Math.max(l, page) + 0.05) / (Math.min(l, page) + 0.05);"
	"  if (ratio < least) { least = ratio; which = e.outerHTML.slice(0, 80); } }"
	" return page.toFixed(3) + ' ' + least.toFixed(2) + ' ' + which; })()";

static void look(struct browser *b, const char *scheme, double *page)
{
	char params[128];
	const char *said;
	double least = 0;

	snprintf(params, sizeof(params), "\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"%s\"}]",
		scheme);
	ask(b, "Emulation.setEmulatedMedia", params);
	said = script(b, contrast);
	assert_int_equal(sscanf(said, "%lf %lf", page, &least), 2);
	if (least < 4.5)
		fail_msg("%s: hard to read: %s", scheme, said);
}

static void look_by_day_and_by_night(void (*write)(const char *path))
{
	struct browser b;
	double light, dark;

	open_page(&b, write);
	look(&b, "light", &light);
	look(&b, "dark", &dark);
	assert_true(light > 0.8);
	assert_true(dark < 0.05);
	stop(&b);
}

static void test_the_page_follows_dark_mode_and_every_text_can_be_read(void **state)
{
	look_by_day_and_by_night(write_page);
	look_by_day_and_by_night(write_export);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_tab_key_reaches_all_that_can_be_used_in_the_order_of_the_page),
		cmocka_unit_test(test_enter_and_space_open_and_close_and_arrows_scroll),
		cmocka_unit_test(test_the_page_follows_dark_mode_and_every_text_can_be_read),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
