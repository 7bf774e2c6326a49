/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>

#include "page.h"

static const char style[] =
	":root{color-scheme:light dark;--fg:#1c1e21;--bg:#fff;--dim:#5b636d;--line:#d7dbe0;--p50:#1769aa;--p99:#c2410c;"
	"--max:#6b7480;--bad:#b42318;--good:#1a7f37}"
	"@media(prefers-color-scheme:dark){:root{--fg:#e6e8eb;--bg:#16181c;--dim:#9aa3ad;--line:#343a42;--p50:#6cb6ff;"
	"--p99:#ff9d5c;--max:#8a94a0;--bad:#ff8a80;--good:#6fdd8b}}"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:62rem;margin:2rem auto;"
	"padding:0 1rem}"
	"h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
	"table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);"
	"text-align:right}th:first-child,td:first-child,td.t,th.t{text-align:left}th{color:var(--dim);font-weight:600}"
	"svg{width:100%;height:auto}svg text{fill:var(--dim);font-size:11px}"
	".bad{color:var(--bad)}.good{color:var(--good)}.dim{color:var(--dim)}"
	"summary{cursor:pointer;padding:.3rem 0}a{color:var(--p50)}"
	":focus-visible{outline:2px solid var(--p50);outline-offset:2px}"
	".deep{padding-left:1.8rem}.deeper{padding-left:3rem}"
	"code{font-size:.9em;overflow-wrap:anywhere}";

void page__begin(struct str *s, const char *name, const char *more)
{
	str__add(s, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
		    "content=\"width=device-width\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
		    "'none'; style-src 'unsafe-inline'\"><title>");
	str__xml(s, name);
	str__add(s, ": ");
	str__xml(s, more);
	str__add(s, "</title><style>");
	str__add(s, style);
	str__add(s, "</style></head><body>\n<main>\n");
}

void page__end(struct str *s)
{
	str__add(s, "</main></body></html>\n");
}

void page__ms(struct str *s, u64 ns)
{
	str__fmt(s, "%.2f", (double)ns / 1e6);
}

void page__cell_ms(struct str *s, u64 ns)
{
	str__add(s, "<td>");
	page__ms(s, ns);
	str__add(s, "</td>");
}

void page__cell_bar(struct str *s, double part, double most, const char *colour)
{
	str__fmt(s,
		"<td class=\"t\"><svg viewBox=\"0 0 100 4\" aria-hidden=\"true\"><rect width=\"%.1f\" height=\"4\" "
		"fill=\"var(--%s)\"/></svg></td>",
		most > 0 ? 100 * part / most : 0, colour);
}

double plot__y(u64 ns, double top_ms)
{
	double ms = fmin((double)ns / 1e6, top_ms);

	return PLOT_BASE - ms / top_ms * (PLOT_H - 30);
}

double plot__x(u64 at, u64 end)
{
	return 40 + (double)at / (double)(end ?: 1) * (PLOT_W - 50);
}

void page__begin_plot(struct str *s, const char *label, double top_ms)
{
	str__fmt(s, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", PLOT_W, PLOT_H, label);
	for (int i = 0; i <= 4; i++) {
		double y = PLOT_BASE - (PLOT_H - 30) * i / 4.0;

		str__fmt(s,
			"<line x1=\"40\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/><text x=\"34\" "
			"y=\"%.1f\" text-anchor=\"end\">%.0f</text>",
			PLOT_W - 10, y, y, y + 4, top_ms * i / 4);
	}
}

void page__end_plot(struct str *s, double from_s, double to_s)
{
	str__fmt(s,
		"<text x=\"40\" y=\"%d\">%.4g s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g "
		"s</text></svg>\n",
		PLOT_H - 4, from_s, PLOT_W - 10, PLOT_H - 4, to_s);
}
