/* SPDX-License-Identifier: MIT */
/* What a crawl leaves out. */
#include "tools/import/crawl_impl.h"

#include <stdlib.h>
#include <string.h>

#include "tools/import/ignore.h"

/* What a .gitignore file says. */
struct pfs_crawl_rules {
	struct pfs_crawl_rules *next;
	struct pfs_ignore ignore;
};

#define GITIGNORE ".gitignore"

int pfs_crawl_read_rules(struct pfs_crawl_thread *thread, const struct pfs_ignore *above)
{
	struct pfs_crawl *crawl = thread->crawl;
	const struct pfs_leaving_out *leaving_out = crawl->options.leaving_out;
	struct pfs_crawl_rules *rules;
	int error = 0;

	thread->ignore = above;
	thread->tag_only = false;
	if (leaving_out && leaving_out->caches)
		error = pfs_find_cache_tag(&thread->tag_only, thread->fd);
	if (pfs_crawl_is_own(error))
		return error;
	if (!leaving_out || !leaving_out->gitignore)
		return 0;
	rules = calloc(1, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	rules->ignore.above = above;
	rules->ignore.base_len = thread->dir->path_len;
	error = pfs_ignore_read(&rules->ignore, thread->fd, GITIGNORE, true);
	if (error || !rules->ignore.n) {
		pfs_ignore_finish(&rules->ignore);
		free(rules);
		if (!error || error == -ENOENT || error == -ELOOP)
			return 0;
		return pfs_crawl_unreadable(thread, GITIGNORE, error);
	}
	thread->ignore = &rules->ignore;
	(void)pthread_mutex_lock(&crawl->mutex);
	rules->next = crawl->rules;
	crawl->rules = rules;
	(void)pthread_mutex_unlock(&crawl->mutex);
	return 0;
}

bool pfs_crawl_leaves_out(const struct pfs_crawl_thread *thread, const char *name, bool directory)
{
	const struct pfs_leaving_out *leaving_out = thread->crawl->options.leaving_out;
	const struct pfs_crawl_dir *dir = thread->dir;

	if (!pfs_leaving_out_given(leaving_out))
		return false;
	return (thread->tag_only && strcmp(name, PFS_CACHE_TAG) != 0) ||
	       pfs_ignores(&leaving_out->rules, dir->path, dir->path_len, name, directory) ||
	       pfs_ignores(thread->ignore, dir->path, dir->path_len, name, directory);
}

void pfs_crawl_free_rules(struct pfs_crawl *crawl)
{
	while (crawl->rules) {
		struct pfs_crawl_rules *rules = crawl->rules;

		crawl->rules = rules->next;
		pfs_ignore_finish(&rules->ignore);
		free(rules);
	}
}
