/* SPDX-License-Identifier: MIT */
/* The text after -o, and which listings carry attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "fs/mount/advice.h"
#include "fs/mount/options.h"

static int parse(struct pfs_mount_options *options, char *message, const char *text)
{
	pfs_mount_options_init(options);
	return pfs_mount_options_parse(options, message, 256, text);
}

static void defaults(void **state PFS_UNUSED)
{
	struct pfs_mount_options options;
	char message[256];

	assert_int_equal(parse(&options, message, ""), 0);
	assert_int_equal(options.flags, MS_NOSUID | MS_NODEV);
	assert_true(options.threads >= 1 && options.threads <= PFS_MOUNT_THREADS_MAX);
	assert_true(options.timeout > 3600);
	assert_true(options.query_memory >= (UINT64_C(1) << 30)); /* more where there is more */
	assert_int_equal(options.readdirplus, PFS_READDIRPLUS_AUTO);
	assert_int_equal(options.engine, PFS_ENGINE_AUTO);
	assert_false(options.allow_other || options.writeback || options.single);
}

static void the_last_one_wins(void **state PFS_UNUSED)
{
	struct pfs_mount_options options;
	char message[256];

	assert_int_equal(parse(&options, message, "ro,noexec,rw,suid,dev"), 0);
	assert_int_equal(options.flags, MS_NOEXEC);
	assert_int_equal(parse(&options, message, "rw,noatime,ro"), 0);
	assert_int_equal(options.flags, MS_RDONLY | MS_NOATIME | MS_NOSUID | MS_NODEV);
}

static void values(void **state PFS_UNUSED)
{
	struct pfs_mount_options options;
	char message[256];

	assert_int_equal(parse(&options, message,
			       "threads=7,timeout=0.5,readdirplus=never,engine=host,writeback,"
			       "allow_other"),
			 0);
	assert_int_equal(options.threads, 7);
	assert_true(options.timeout == 0.5);
	assert_int_equal(options.readdirplus, PFS_READDIRPLUS_NEVER);
	assert_int_equal(options.engine, PFS_ENGINE_HOST);
	assert_true(options.writeback && options.allow_other);
	assert_int_equal(options.links, PFS_LINKS_AUTO);
	assert_int_equal(parse(&options, message, "links=no,links=yes"), 0);
	assert_int_equal(options.links, PFS_LINKS_YES);
	assert_int_equal(parse(&options, message, "links=no"), 0);
	assert_int_equal(options.links, PFS_LINKS_NO);
	assert_int_equal(parse(&options, message, "links=1"), -EINVAL);
}

static void each_value_has_its_member(void **state PFS_UNUSED)
{
	struct pfs_mount_options options;
	char message[256];

	assert_int_equal(parse(&options, message,
			       "snapshot=no,history=2d,refresh=0.25,watch=inotify,watch_limit=12,"
			       "query_memory=2G,query_memory_total=3M,query_value=64K,query_rest=3,"
			       "query_kept=5,query_measure=no,query_time=1.5"),
			 0);
	assert_true(options.no_image_file && options.no_measuring && options.sets_history);
	assert_int_equal(options.history.age, INT64_C(2) * 86400 * 1000000000);
	assert_int_equal(options.refresh_ms, 250);
	assert_int_equal(options.watch, PFS_FOLLOW_INOTIFY);
	assert_int_equal(options.watch_limit, 12);
	assert_int_equal(options.query_memory, UINT64_C(2) << 30);
	assert_int_equal(options.query_memory_total, 3u << 20);
	assert_int_equal(options.query_value, 64u << 10);
	assert_int_equal(options.query_rest_ms, 3000);
	assert_int_equal(options.query_kept, 5);
	assert_int_equal(options.query_time_ms, 1500);
	assert_int_equal(parse(&options, message, "watch,snapshot=yes,query_measure=yes"), 0);
	assert_int_equal(options.watch, PFS_FOLLOW_AUTO);
	assert_false(options.no_image_file || options.no_measuring || options.sets_history);
	assert_int_equal(parse(&options, message, "query_value=63K"), -EINVAL);
	assert_string_equal(message, "option query_value: not 64K to 1G");
}

static void ignores_what_is_for_others(void **state PFS_UNUSED)
{
	struct pfs_mount_options options;
	char message[256];

	assert_int_equal(parse(&options, message,
			       ",defaults,noauto,,nofail,_netdev,users,user=me,x-systemd.a=b,"
			       "comment=c,default_permissions,user_id=0,group_id=0,"),
			 0);
	assert_int_equal(options.flags, MS_NOSUID | MS_NODEV);
}

static void refuses_the_rest(void **state PFS_UNUSED)
{
	static const struct {
		const char *text, *named;
	} cases[] = {
		{"nonsense", "'nonsense'"},
		{"ro,nonsense=1", "'nonsense=1'"},
		{"readonly", "'readonly'"},
		{"threads", "'threads'"},
		{"ro=1", "'ro=1'"},
		{"threads=0", "threads"},
		{"threads=65", "threads"},
		{"threads=", "threads"},
		{"threads=1x", "threads"},
		{"timeout=-1", "timeout"},
		{"timeout=nan", "timeout"},
		{"timeout=inf", "timeout"},
		{"timeout=1s", "timeout"},
		{"timeout=", "timeout"},
		{"readdirplus=often", "readdirplus"},
		{"engine=gpu", "engine"},
		{"=1", "'=1'"},
		{"query=1", "'query=1'"},
	};
	struct pfs_mount_options options;
	char message[256], longest[5000];
	size_t i;

	for (i = 0; i < PFS_COUNT(cases); i++) {
		*message = '\0';
		assert_int_equal(parse(&options, message, cases[i].text), -EINVAL);
		assert_non_null(strstr(message, cases[i].named));
		assert_null(strchr(message, '\n'));
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(parse(&options, message, longest), -EINVAL);
}

/* ---- advice ---- */

static void first_part_carries_attributes(void **state PFS_UNUSED)
{
	struct pfs_advice advice = {0};

	assert_true(pfs_advice_list(&advice, 100, 3, 0));
	assert_false(pfs_advice_list(&advice, 100, 3, 17));
	assert_true(pfs_advice_list(&advice, 100, 5, 0));
}

static void who_looks_up_gets_attributes(void **state PFS_UNUSED)
{
	struct pfs_advice advice = {0};

	assert_false(pfs_advice_list(&advice, 100, 3, 17));
	pfs_advice_lookup(&advice, 100, 5); /* elsewhere: does not count */
	assert_false(pfs_advice_list(&advice, 100, 3, 18));
	pfs_advice_lookup(&advice, 101, 3); /* somebody else */
	assert_false(pfs_advice_list(&advice, 100, 3, 19));
	pfs_advice_lookup(&advice, 100, 3);
	assert_true(pfs_advice_list(&advice, 100, 3, 20));
	assert_true(pfs_advice_list(&advice, 100, 7, 21));
	assert_false(pfs_advice_list(&advice, 101, 7, 21));
}

static void a_slot_is_taken_over(void **state PFS_UNUSED)
{
	struct pfs_advice advice = {0};

	assert_false(pfs_advice_list(&advice, 100, 3, 17));
	pfs_advice_lookup(&advice, 100, 3);
	assert_true(pfs_advice_list(&advice, 100, 3, 18));
	assert_false(pfs_advice_list(&advice, 100 + PFS_ADVICE_SLOTS, 3, 17));
	assert_false(pfs_advice_list(&advice, 100, 3, 19));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(the_last_one_wins),
		cmocka_unit_test(values),
		cmocka_unit_test(each_value_has_its_member),
		cmocka_unit_test(ignores_what_is_for_others),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(first_part_carries_attributes),
		cmocka_unit_test(who_looks_up_gets_attributes),
		cmocka_unit_test(a_slot_is_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
