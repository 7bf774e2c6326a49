/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What HTML pages have in common. One page needs nothing else: no network, no script. Plots are SVG; what is hidden
 * opens with <details>, so the keyboard reaches all of it; colours follow the reader's light or dark mode.
 */
#ifndef REDFRAME_PAGE_H
#define REDFRAME_PAGE_H

#include "strings.h"

/* Up to <main>; the title is "name: more". */
void page__begin(struct str *s, const char *name, const char *more);
void page__end(struct str *s);

void page__ms(struct str *s, u64 ns); /* "16.67" */
void page__cell_ms(struct str *s, u64 ns);
/* a bar of so many of most, in a cell of its own; colour is one of the style's, "p99" */
void page__cell_bar(struct str *s, double part, double most, const char *colour);

#define PLOT_W    900
#define PLOT_H    240
#define PLOT_BASE (PLOT_H - 20) /* y of 0 ms */

/* Frame time over time: an <svg> with its scale from 0 to top_ms; what is above is cut off. */
void page__begin_plot(struct str *s, const char *label, double top_ms);
void page__end_plot(struct str *s, double from_s, double to_s);
double plot__y(u64 ns, double top_ms);
double plot__x(u64 at, u64 end); /* both since the plot's beginning, in any unit */

#endif
