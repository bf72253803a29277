/* SPDX-License-Identifier: MIT */
/* A dictionary of prefix trees by their names. */
#include "gpu/prefix.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/prefix_impl.h"

#define ROOM (PFS_PREFIX_NAME_MAX + 1) /* bytes of a name, padded with 0 */

struct pfs_prefix_names {
	pthread_rwlock_t lock; /* guards everything below */
	char *names;	       /* each has ROOM bytes, as a device compares them */
	struct pfs_prefix **indexes;
	size_t n, names_capacity, indexes_capacity;
};

int pfs_prefix_names_create(struct pfs_prefix_names **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(void)pthread_rwlock_init(&(*out)->lock, NULL);
	return 0;
}

void pfs_prefix_names_close(const struct pfs_run *run, struct pfs_prefix_names *names)
{
	(void)run;
	if (!names)
		return;
	(void)pthread_rwlock_destroy(&names->lock);
	free(names->names);
	free(names->indexes);
	free(names);
}

static int padded(char *out, const char *name)
{
	size_t len = strlen(name);

	if (len == 0)
		return -EINVAL;
	if (len > PFS_PREFIX_NAME_MAX)
		return -ENAMETOOLONG;
	memset(out, 0, ROOM);
	memcpy(out, name, len + 1);
	return 0;
}

/* Returns the number of the name, or n if there is none. */
static size_t number_of(const struct pfs_prefix_names *names, const char *wanted)
{
	size_t i = 0;

	while (i < names->n && memcmp(names->names + i * ROOM, wanted, ROOM) != 0)
		i++;
	return i;
}

static int add(struct pfs_prefix_names *names, const char *name, struct pfs_prefix *index)
{
	if (number_of(names, name) < names->n)
		return -EEXIST;
	PFS_TRY(pfs_grow(&names->names, &names->names_capacity, (names->n + 1) * ROOM, 1));
	PFS_TRY(pfs_grow(&names->indexes, &names->indexes_capacity, names->n + 1,
			 sizeof(struct pfs_prefix *)));
	memcpy(names->names + names->n * ROOM, name, ROOM);
	names->indexes[names->n++] = index;
	return 0;
}

int pfs_prefix_names_add(struct pfs_prefix_names *names, const char *name, struct pfs_prefix *index)
{
	char wanted[ROOM];
	int error;

	PFS_TRY(padded(wanted, name));
	(void)pthread_rwlock_wrlock(&names->lock);
	error = add(names, wanted, index);
	(void)pthread_rwlock_unlock(&names->lock);
	return error;
}

static int find(const struct pfs_run *run, const struct pfs_prefix_names *names, size_t *found,
		const char *wanted)
{
	struct pfs_operator_backend *device =
		run->on == PFS_ENGINE_HOST ? NULL : pfs_operators_device(run->operators);
	uint32_t number = PFS_PREFIX_NONE;
	int error = -EOPNOTSUPP;

	if (device && device->families->prefix && names->n)
		error = device->families->prefix->find_name(device, run, &number, names->names,
							    names->n, wanted);
	*found = PFS_MIN(number, names->n);
	if (error != -EOPNOTSUPP && error != -ENOMEM && error != -EIO)
		return error;
	*found = number_of(names, wanted);
	return 0;
}

int pfs_prefix_names_find(const struct pfs_run *run, struct pfs_prefix_names *names,
			  struct pfs_prefix **out, const char *name)
{
	char wanted[ROOM];
	size_t found;
	int error;

	*out = NULL;
	PFS_TRY(padded(wanted, name));
	(void)pthread_rwlock_rdlock(&names->lock);
	error = find(run, names, &found, wanted);
	if (!error && found < names->n)
		*out = names->indexes[found];
	(void)pthread_rwlock_unlock(&names->lock);
	return error;
}

int pfs_prefix_names_remove(struct pfs_prefix_names *names, const char *name)
{
	char wanted[ROOM];
	size_t found, behind;

	PFS_TRY(padded(wanted, name));
	(void)pthread_rwlock_wrlock(&names->lock);
	found = number_of(names, wanted);
	behind = names->n - PFS_MIN(found + 1, names->n);
	if (found < names->n) {
		memmove(names->names + found * ROOM, names->names + (found + 1) * ROOM,
			behind * ROOM);
		memmove(&names->indexes[found], &names->indexes[found + 1],
			behind * sizeof(struct pfs_prefix *));
		names->n--;
		behind = SIZE_MAX;
	}
	(void)pthread_rwlock_unlock(&names->lock);
	return behind == SIZE_MAX ? 0 : -ENOENT;
}

int pfs_prefix_names_each(struct pfs_prefix_names *names,
			  int (*each)(void *context, const char *name, struct pfs_prefix *index),
			  void *context)
{
	int answer = 0;

	(void)pthread_rwlock_rdlock(&names->lock);
	for (size_t i = 0; i < names->n && !answer; i++)
		answer = each(context, names->names + i * ROOM, names->indexes[i]);
	(void)pthread_rwlock_unlock(&names->lock);
	return answer;
}
