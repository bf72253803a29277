/* SPDX-License-Identifier: MIT */
/* What the kernel says of changes, by each of its means: names of all lengths, so that events lie
 * anywhere. */
#include "tests/unit/store_util.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tools/refresh/sourceevents.h"

static uint64_t watched;
static unsigned stale, others;

static void hear(void *arg PFS_UNUSED, enum pfs_sourceevent event, uint64_t number)
{
	if (event == PFS_SOURCEEVENT_STALE && number == watched)
		stale++;
	else
		others++;
}

static void touch(int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* By another process: fanotify leaves out our own. */
static void change(int folder)
{
	char name[41] = "";
	int status;
	pid_t child = fork();

	if (!child) {
		for (size_t i = 0; i < sizeof(name) - 1; i++) {
			name[i] = 'n';
			touch(folder, name);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void hears_with(enum pfs_sourceevents_kind kind)
{
	struct pfs_sourceevents *events;
	char path[128];
	int folder, error;

	(void)snprintf(path, sizeof(path), "%s/%d", test_folder, (int)kind);
	assert_int_equal(mkdir(path, 0700), 0);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder >= 0);
	stale = others = 0;
	error = pfs_sourceevents_open(&events, kind, &folder, 1);
	if (!error) {
		assert_int_equal(pfs_sourceevents_add(events, &watched, folder), 0);
		change(folder);
		assert_int_equal(pfs_sourceevents_read(events, hear, NULL), 0);
		pfs_sourceevents_close(events);
	}
	(void)close(folder);
	if (error)
		skip();
	assert_true(stale >= 1);
}

static void hears_with_fanotify(void **state PFS_UNUSED)
{
	hears_with(PFS_SOURCEEVENTS_FANOTIFY);
}

static void hears_with_inotify(void **state PFS_UNUSED)
{
	hears_with(PFS_SOURCEEVENTS_INOTIFY);
	assert_int_equal(others, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hears_with_fanotify),
		cmocka_unit_test(hears_with_inotify),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
