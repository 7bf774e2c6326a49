// SPDX-License-Identifier: GPL-2.0-only
#include "device_watch.h"
#include "objects.h"
#include "vulkan.h"

#define LOOKS 5 /* after a vkCreateDevice, which takes its time: after 50, 100, 200, … ms */

int device_watch__open(struct device_watch *d, u32 tgid)
{
	struct objects o;
	int err = 0;

	if (d->on || objects__read(&o, tgid))
		return 0;
	if (vulkan__create_device(&d->sites, &o) > 0) {
		err = trial__open(&d->trial, tgid) ?: min(trial__add(&d->trial, &d->sites), 0);
		d->on = !err;
		if (err)
			trial__close(&d->trial);
	}
	objects__free(&o);
	if (!d->on)
		sites__free(&d->sites);
	return err;
}

void device_watch__close(struct device_watch *d)
{
	if (d->on)
		trial__close(&d->trial);
	sites__free(&d->sites);
	d->on = false;
}

bool device_watch__is_due(struct device_watch *d, u64 now_ms)
{
	u64 n = d->on ? trial__count(&d->trial, 0) : 0;

	if (n != d->count) {
		d->count = n;
		d->looks = LOOKS;
		d->step = 50;
		d->next = now_ms + d->step;
	}
	if (!d->looks || now_ms < d->next)
		return false;
	d->looks--;
	d->step *= 2;
	d->next += d->step;
	return true;
}
