/* SPDX-License-Identifier: MIT */
#include "tools/bench/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"

/* ---- .query/stats ---- */

/* Returns what follows the text; "": it is not there. */
static const char *after(const char *stats, const char *text)
{
	const char *at = strstr(stats, text);

	return at ? at + strlen(text) : "";
}

static uint64_t number(const char *stats, const char *title)
{
	return strtoull(after(stats, title), NULL, 10);
}

void pfs_bench_daemon_read(struct pfs_bench_daemon *out, const char *stats)
{
	const char *operators = after(stats, "\"operators\": {\"device\": ");

	*out = (struct pfs_bench_daemon){
		.has_device = strncmp(operators, "true", 4) == 0,
		.on_host = number(operators, "\"on_host\": "),
		.on_device = number(operators, "\"on_device\": "),
		.operators_ns = number(operators, "\"ns\": "),
	};
}

/* ---- shares ---- */

void pfs_bench_shares_take(struct pfs_bench_shares *shares, const struct pfs_bench_daemon *before,
			   const struct pfs_bench_daemon *now)
{
	shares->operators_seconds = (double)(now->operators_ns - before->operators_ns) / 1e9;
}

void pfs_bench_shares_print(const struct pfs_bench_shares *shares, const char *what,
			    struct pfs_json *json)
{
	double ms = 1e3 / shares->runs;
	double operators = shares->operators_seconds * ms;
	double others = (shares->seconds - shares->operators_seconds) * ms;

	if (!json) {
		(void)printf("    on average: operators %.3f, preparing, text and FUSE %.3f ms\n",
			     operators, others);
		return;
	}
	pfs_json_open(json, NULL, '{');
	pfs_json_string(json, "what", what);
	pfs_json_real(json, "operators_ms", operators);
	pfs_json_real(json, "others_ms", others);
	pfs_json_close(json, '}');
}

void pfs_bench_operators_print(const struct pfs_bench_daemon *before,
			       const struct pfs_bench_daemon *now, const char *what,
			       struct pfs_json *json)
{
	uint64_t device = now->on_device - before->on_device;
	uint64_t host = now->on_host - before->on_host;

	if (!now->has_device)
		return;
	if (!json) {
		(void)printf("    operators: %llu by the device, %llu by the host\n",
			     (unsigned long long)device, (unsigned long long)host);
		return;
	}
	pfs_json_open(json, NULL, '{');
	pfs_json_string(json, "what", what);
	pfs_json_u64(json, "on_device", device);
	pfs_json_u64(json, "on_host", host);
	pfs_json_close(json, '}');
}
