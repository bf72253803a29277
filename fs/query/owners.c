/* SPDX-License-Identifier: MIT */
/* Names of users and groups.  Few ids stand at many nodes, and the system's databases may be far
 * away: each id is looked up once, and the answer is kept as long as the cache. */
#include "fs/query/internal.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"

#define ENTRY_SIZE 16384 /* of a line in a database, members included; longer ones have no name */

struct owner {
	uint32_t id;
	char *name; /* NULL: the id has none */
};

struct owners {
	struct owner *table; /* in order of ids */
	size_t n, capacity;
};

struct pfs_owners {
	pthread_mutex_t lock;
	struct owners users, groups; /* protected by lock; names stay where they are */
};

int pfs_owners_create(struct pfs_owners **out)
{
	struct pfs_owners *owners = calloc(1, sizeof(*owners));

	*out = owners;
	if (!owners)
		return -ENOMEM;
	(void)pthread_mutex_init(&owners->lock, NULL);
	return 0;
}

static void free_names(struct owners *owners)
{
	for (size_t i = 0; i < owners->n; i++)
		free(owners->table[i].name);
	free(owners->table);
}

void pfs_owners_destroy(struct pfs_owners *owners)
{
	if (!owners)
		return;
	free_names(&owners->users);
	free_names(&owners->groups);
	(void)pthread_mutex_destroy(&owners->lock);
	free(owners);
}

static int look_up(char **name, uint32_t id, bool groups)
{
	char *buffer PFS_FREE = malloc(ENTRY_SIZE);
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	const char *found = NULL;

	if (!buffer)
		return -ENOMEM;
	if (groups && !getgrgid_r(id, &group, buffer, ENTRY_SIZE, &found_group) && found_group)
		found = group.gr_name;
	if (!groups && !getpwuid_r(id, &user, buffer, ENTRY_SIZE, &found_user) && found_user)
		found = user.pw_name;
	*name = found ? strdup(found) : NULL;
	return found && !*name ? -ENOMEM : 0;
}

/* Returns where the id is, or would be. */
static size_t place_of(const struct owners *owners, uint32_t id)
{
	return PFS_SEARCH(i, 0, owners->n, owners->table[i].id < id);
}

static int name_of(const char **name, struct owners *owners, uint32_t id, bool groups)
{
	size_t place = place_of(owners, id);
	char *found = NULL;

	if (place == owners->n || owners->table[place].id != id) {
		PFS_TRY(pfs_grow(&owners->table, &owners->capacity, owners->n + 1,
				 sizeof(*owners->table)));
		PFS_TRY(look_up(&found, id, groups));
		memmove(&owners->table[place + 1], &owners->table[place],
			(owners->n - place) * sizeof(*owners->table));
		owners->table[place] = (struct owner){.id = id, .name = found};
		owners->n++;
	}
	*name = owners->table[place].name;
	return 0;
}

int pfs_owners_names(struct pfs_owners *owners, struct pfs_sql_value *values, const int64_t *ids,
		     size_t n, bool groups)
{
	const char *name = NULL;
	size_t len = 0;

	PFS_LOCKED(&owners->lock);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || ids[i] != ids[i - 1]) {
			PFS_TRY(name_of(&name, groups ? &owners->groups : &owners->users,
					(uint32_t)ids[i], groups));
			len = name ? strlen(name) : 0;
		}
		values[i] = (struct pfs_sql_value){
			.type = name ? PFS_SQL_TEXT : PFS_SQL_NULL,
			.bytes = name,
			.size = len,
		};
	}
	return 0;
}
