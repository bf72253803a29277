/* SPDX-License-Identifier: MIT */
#include "gpu/host/chain.h"

#include <string.h>

#include "base/checked.h"

/* Levels whose code is kept come first: below a deep directory all are deep. */
struct pfs_chain_level {
	uint32_t directory;
	uint32_t n_limbs; /* 0: the code is deep */
	uint32_t limbs[PFS_LIMBS_MAX];
};

void pfs_chain_finish(struct pfs_chain *chain)
{
	free(chain->levels);
	free(chain->path);
}

static int push(struct pfs_chain *chain, uint32_t directory)
{
	struct pfs_chain_level *above = chain->n ? &chain->levels[chain->n - 1] : NULL, *level;

	if (above && above->n_limbs == 0) { /* one entry stands for all deep codes */
		above->directory = directory;
		return 0;
	}
	if (pfs_grow(&chain->levels, &chain->capacity, chain->n + 1, sizeof(*chain->levels)))
		return -ENOMEM;
	level = &chain->levels[chain->n];
	above = chain->n ? level - 1 : NULL;
	level->directory = directory;
	level->n_limbs = above ? above->n_limbs : 1;
	chain->n++;
	if (!above)
		level->limbs[0] = 1;
	else
		memcpy(level->limbs, above->limbs, above->n_limbs * sizeof(*level->limbs));
	if (!pfs_multiply_on(level->limbs, &level->n_limbs, PFS_LIMBS_MAX,
			     chain->c->directories[directory].prime))
		level->n_limbs = 0;
	return 0;
}

/* Makes the levels end with the directory. */
static int follow(struct pfs_chain *chain, uint32_t directory)
{
	const struct pfs_directory *directories = chain->c->directories;
	uint32_t parent = directories[directory].parent;
	size_t n = 0;
	int error = 0;

	while (chain->n && chain->levels[chain->n - 1].directory != parent)
		chain->n--;
	for (uint32_t d = directory; d; d = chain->n ? 0 : directories[d].parent) {
		if (pfs_grow(&chain->path, &chain->path_capacity, n + 1, sizeof(*chain->path)))
			return -ENOMEM;
		chain->path[n++] = d;
	}
	while (n-- > 0 && error == 0) {
		error = push(chain, chain->path[n]);
	}
	return error;
}

int pfs_chain_code(struct pfs_chain *chain, const uint32_t **limbs, unsigned *n_limbs,
		   uint32_t directory)
{
	int error = follow(chain, directory);

	if (error)
		return error;
	*limbs = chain->levels[chain->n - 1].limbs;
	*n_limbs = chain->levels[chain->n - 1].n_limbs;
	return 0;
}
