/* SPDX-License-Identifier: GPL-2.0-only */
#include "explain_view.h"

/* The same words stand in docs/attribution.md, "Formulas": a test compares them. */
const char explain_formulas[] =
	"frame          from mark to mark of one frame source, swapchain and process\n"
	"mean           total time of all frames / number of frames; average fps = 1000 / mean in ms\n"
	"percentile p   nearest rank: the ceil(p / 100 × n)-th shortest of n frames; median = p50\n"
	"               exact for the first 1,048,576 frames, then within 0.1 %\n"
	"1 % low        1 / mean duration of the ceil(n / 100) longest frames, in fps\n"
	"0.1 % low      1 / mean duration of the ceil(n / 1000) longest frames, in fps\n"
	"budget auto    max(1.5 × m, m + 2 ms), m = median of the stream's last 120 frames before this one;\n"
	"               none until there are 5\n"
	"slow           duration > budget; of one that --budget sets, by more than 5 %: a limiter's jitter is none\n"
	"over budget    sum over slow frames of duration - budget\n"
	"typical        median over the normal frames among the stream's last 120; normal: neither slow nor with "
	"records\n"
	"               lost. Where fewer than 30 of them are normal, over all of them. Lower median: the\n"
	"               ceil(n / 2)-th shortest\n"
	"warm-up        until a stream has 30 frames the budget is what is typical\n"
	"excess         of a cause: its time in the frame - its typical time. Of one thing among several of a cause: "
	"its\n"
	"               time - what is typical of that cause and thread, the smallest things first, so that the\n"
	"               excesses of a cause sum to the cause's\n"
	"share          of a cause: its excess in all slow frames / the excess of all causes in them\n"
	"period         mean interval between the hitches of a pattern, if there are at least three of them and the\n"
	"               standard deviation of the intervals is below a tenth of the mean\n";
