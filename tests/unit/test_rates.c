/* SPDX-License-Identifier: MIT */
/* Rates that estimates go by: fixed until somebody has them measured, never far from the fixed
 * ones, and what is chosen follows them. */
#include "fs/query/internal.h"
#include "fs/query/relational/kept_rates.h"
#include "fs/query/relational/measure.h"
#include "tests/ref/stand_in_operators.h"
#include "tests/unit/cost_util.h"

#include <math.h>

static bool has_device;
static struct pfs_operators *shared; /* NULL: nobody else has the device */

/* Computes something of one row on the device. */
static void ask_as_another(struct pfs_operators *operators)
{
	const struct pfs_table table = {.n_rows = 1};
	const struct pfs_source source = {.table = &table};
	const struct pfs_run run = {.operators = operators, .on = PFS_ENGINE_CUDA};
	struct pfs_tuples *tuples;

	assert_int_equal(pfs_compute(&run, &tuples, &source, NULL, 0), 0);
	assert_non_null(tuples->device);
	pfs_tuples_free(&run, tuples);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what it wraps */
int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out);
int __real_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program);
int __wrap_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program);

int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	return has_device ? stand_in_operators_open(out) : -ENODEV;
}

int __wrap_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program)
{
	if (shared)
		ask_as_another(shared);
	return __real_pfs_host_select_rows(b, run, out, source, program);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const char sql[] = "SELECT ext, count(*) FROM nodes GROUP BY ext";

static void assert_within_range(const struct pfs_rates *rates)
{
	for (unsigned i = 0; i < PFS_N_WORKS; i++) {
		const struct pfs_rate *now = &rates->work[i], *fixed = &pfs_rates_fixed.work[i];

		assert_true(now->host <= fixed->host * PFS_RATES_RANGE * 1.001);
		assert_true(now->host >= fixed->host / PFS_RATES_RANGE / 1.001);
		assert_true(now->device <= fixed->device * PFS_RATES_RANGE * 1.001);
		assert_true(now->device >= fixed->device / PFS_RATES_RANGE / 1.001);
	}
}

static struct pfs_rates measured(double ns)
{
	struct pfs_rates rates = pfs_rates_fixed;
	struct pfs_measured all;

	for (unsigned i = 0; i < PFS_N_SAMPLES; i++)
		all.ns[i] = ns;
	pfs_rates_measured(&rates, &all);
	assert_true(rates.is_measured && !rates.is_seen);
	assert_within_range(&rates);
	return rates;
}

static void test_range(void **state PFS_UNUSED)
{
	struct pfs_rates slow = measured(1e9), fast = measured(1e-9);
	const double none[] = {0, -1, NAN, INFINITY};

	for (unsigned i = 0; i < PFS_N_WORKS; i++) {
		const struct pfs_rate *fixed = &pfs_rates_fixed.work[i];

		assert_true(slow.work[i].host > 3 * fixed->host);
		assert_true(fast.work[i].host < fixed->host / 3);
	}
	/* a device has its own rates, but for what the host does for it */
	assert_true(slow.work[PFS_WORK_JOIN].device == pfs_rates_fixed.work[PFS_WORK_JOIN].device);
	assert_true(slow.work[PFS_WORK_GIVE].device == slow.work[PFS_WORK_GIVE].host);
	for (size_t i = 0; i < PFS_COUNT(none); i++) {
		struct pfs_rates rates = measured(none[i]);

		assert_memory_equal(rates.work, pfs_rates_fixed.work, sizeof(rates.work));
	}
}

static void test_device_range(void **state PFS_UNUSED)
{
	struct pfs_rates rates = pfs_rates_fixed;

	pfs_rates_seen(&rates,
		       &(struct pfs_seen){.start_ns = 1, .launch_ns = 40000, .byte_ns = NAN});
	assert_true(rates.is_seen && !rates.is_measured);
	assert_true(rates.start_ns == pfs_rates_fixed.start_ns / PFS_RATES_RANGE);
	assert_true(rates.launch_ns == 40000);
	assert_true(rates.byte_ns == pfs_rates_fixed.byte_ns);
	assert_memory_equal(rates.work, pfs_rates_fixed.work, sizeof(rates.work));
}

static struct pfs_cost cost(const struct pfs_rates *rates, uint64_t n_nodes)
{
	return cost_of(sql, rates, n_nodes, 2);
}

/* A slow host gives a device what a fast one keeps; a slow bus lets it wait for longer. */
static void test_choice(void **state PFS_UNUSED)
{
	struct pfs_rates slow = measured(1e9), fast = measured(1e-9), late = pfs_rates_fixed;
	uint64_t n = 1000;
	struct pfs_cost usual, slowly, fastly;

	while (usual = cost(&pfs_rates_fixed, n), usual.host_ns < usual.device_ns)
		n += n / 8;
	slowly = cost(&slow, n);
	fastly = cost(&fast, n);
	assert_true(slowly.host_ns > slowly.device_ns);
	assert_true(fastly.host_ns < fastly.device_ns);
	assert_true(slowly.start_ns == usual.start_ns);
	pfs_rates_seen(&late, &(struct pfs_seen){.byte_ns = 1e9, .launch_ns = 1e9});
	assert_true(cost(&late, n).start_ns > usual.start_ns);
	assert_true(cost(&late, n).device_ns > usual.host_ns);
	assert_true(cost(&late, n).host_ns == usual.host_ns);
}

static void test_host(void **state PFS_UNUSED)
{
	struct pfs_rates rates = pfs_rates_fixed;
	struct pfs_measured all;

	assert_int_equal(pfs_measure_host(&all, NULL, NULL), 0);
	for (unsigned i = 0; i < PFS_N_SAMPLES; i++)
		assert_true(all.ns[i] > 0 && isfinite(all.ns[i]));
	pfs_rates_measured(&rates, &all);
	assert_within_range(&rates);
}

static int stop(void *context)
{
	return --*(unsigned *)context ? 0 : -EINTR;
}

static void test_stops(void **state PFS_UNUSED)
{
	struct pfs_measured all;

	for (unsigned polls = 1; polls < 100; polls *= 3) {
		unsigned left = polls;

		assert_int_equal(pfs_measure_host(&all, stop, &left), -EINTR);
	}
}

/* ---- of a tree's statements ---- */

static void plan_says(const char *line)
{
	struct pfs_query *query = begin(sql);
	char rows[200], *plan;

	rest_text(rows, sizeof(rows), query);
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (!strstr(plan, line))
		fail_msg("%s: not in %s", line, plan);
	free(plan);
	pfs_query_finish(query);
}

static void test_fixed(void **state PFS_UNUSED)
{
	struct pfs_rates rates;

	plan_says("\nrates: the host's are fixed, a device's fixed\n");
	pfs_queries_rates(queries, &rates);
	assert_memory_equal(&rates, &pfs_rates_fixed, sizeof(rates));
}

static void test_background(void **state PFS_UNUSED)
{
	struct pfs_rates rates;

	pfs_queries_measure(queries, 0);
	for (unsigned i = 0; i < 60000; i++) {
		pfs_queries_rates(queries, &rates);
		if (rates.is_measured)
			break;
		(void)usleep(1000);
	}
	assert_true(rates.is_measured && !rates.is_seen);
	assert_within_range(&rates);
	plan_says("\nrates: the host's are measured, a device's fixed\n");
	reopen();
	pfs_queries_measure(queries, 3600000); /* which the tree's end does not wait for */
	plan_says("\nrates: the host's are fixed, a device's fixed\n");
}

/* A device is measured as it is started, if measuring is allowed and the device answers. */
static void test_device(void **state PFS_UNUSED)
{
	struct pfs_kept_rates *kept;
	struct pfs_rates rates;

	for (unsigned i = 0; i < 4; i++) {
		struct pfs_placement placement = {.kind = PFS_ENGINE_HOST};
		bool is_allowed = i % 2;

		has_device = i / 2;
		assert_int_equal(pfs_kept_rates_open(&kept), 0);
		if (is_allowed)
			pfs_kept_rates_measure(kept, 3600000);
		assert_int_equal(pfs_placement_open(&placement, PFS_ENGINE_CUDA, kept, NULL), 0);
		pfs_kept_rates_get(kept, &rates);
		assert_int_equal(rates.is_seen, is_allowed && has_device);
		assert_false(rates.is_measured);
		pfs_placement_close(&placement);
		pfs_kept_rates_close(kept);
	}
}

/* The host does what is measured, while others have the device work. */
static void test_others(void **state PFS_UNUSED)
{
	struct pfs_operator_counts counts;
	struct pfs_operators *operators;
	struct pfs_seen seen;

	has_device = true;
	assert_int_equal(pfs_operators_open(&operators, PFS_ENGINE_CUDA, 1), 0);
	assert_int_equal(pfs_measure_device(&seen, operators), 0);
	stand_in_operators.refuses = stand_in_operators.keeps = true;
	shared = operators;
	assert_int_equal(pfs_measure_device(&seen, operators), -EOPNOTSUPP);
	shared = NULL;
	stand_in_operators.refuses = stand_in_operators.keeps = false;
	pfs_operators_count(operators, &counts);
	assert_true(counts.device >= counts.host);
	pfs_operators_close(operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range),	   cmocka_unit_test(test_device_range),
		cmocka_unit_test(test_choice),	   cmocka_unit_test(test_host),
		cmocka_unit_test(test_stops),	   cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_background), cmocka_unit_test(test_device),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
