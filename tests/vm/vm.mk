# SPDX-License-Identifier: GPL-2.0-only
# The tests on other kernels, in an emulator; see tests/vm/run.
KERNELS ?=
.PHONY: test-kernels
$(O)/vm/init: tests/vm/init.c
	@mkdir -p $(@D)
	$Q$(CC) -static -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -o $@ $<
$(O)/vm/features: tests/vm/features.c $(O)/libredframe.a
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)
test-kernels:
	@scripts/deps build test kernels
	@+$(MAKE) --no-print-directory -j$(JOBS) $(O)/redframe $(LIVE_PROGRAMS) $(O)/vm/init $(O)/vm/features
	@O='$(O)' tests/vm/run $(KERNELS)
