// SPDX-License-Identifier: GPL-2.0-only
/* redframe: why was this frame slow? */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "compare_verb.h"
#include "doctor.h"
#include "explain_verb.h"
#include "export.h"
#include "history_verb.h"
#include "info.h"
#include "log.h"
#include "overhead.h"
#include "probe.h"
#include "record.h"
#include "report_verb.h"
#include "soak.h"
#include "symbolize_verb.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv); /* returns enum exit_status */
	const char *about;
} verbs[] = {
	{"record", verb__record, "[-p PID | -n NAME | -- CMD ARGS…]   capture, then explain and export"},
	{"explain", verb__explain, "RECORDING                           say why frames were slow"},
	{"export", verb__export, "RECORDING -o OUT                    write .pftrace, .json, .txt, .csv or .html"},
	{"info", verb__info, "RECORDING                           what is in it: game, clock, kinds, counts, losses"},
	{"compare", verb__compare,
		"BASE NEW                            did this build get worse, and through which cause"},
	{"report", verb__report,
		"RUN --html FILE                     what a run measured: HTML, JUnit, OpenMetrics, JSON"},
	{"history", verb__history,
		"                                    a metric over builds; bisects to the first bad run"},
	{"symbolize", verb__symbolize, "RECORDING --path DIR -o FILE        names from unstripped files, by build-id"},
	{"soak", verb__soak, "[-p PID | -n NAME | -- CMD ARGS…]   hours of it: keep slow frames, sum up the run"},
	{"mark", verb__mark, "-o DIR SCENE                        tell a running soak which scene the game shows"},
	{"probe", verb__probe, "[-p PID | -n NAME | PATH]           what can be hooked, and what record would choose"},
	{"overhead", verb__overhead,
		"[-p PID | -n NAME]                  what each class does to the frame time, measured"},
	{"doctor", verb__doctor, "                                    can this machine trace? and what to do if not"},
};

static int usage(FILE *to)
{
	fprintf(to, "redframe %s: why was this frame slow?\n\n", REDFRAME_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(to, "  redframe %-9s %s\n", verbs[i].name, verbs[i].about);
	fprintf(to, "\nEach has --help. A first try: redframe record -n GAME -d 10\n");
	return to == stdout ? EXIT_OK : EXIT_USAGE;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN); /* `redframe explain … | head`: the write fails, and we end */
	if (argc < 2)
		return usage(stderr);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 2, argv + 2);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return usage(stdout);
	if (!strcmp(argv[1], "--version")) {
		printf("redframe %s\n", REDFRAME_VERSION);
		return EXIT_OK;
	}
	log_err("no command '%s'", argv[1]);
	return usage(stderr);
}
