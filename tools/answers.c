/* SPDX-License-Identifier: MIT */
/* Verbs that the daemon or the command itself answers. */
#include "fs/image/imagefile.h"
#include "tools/client/answer.h"
#include "tools/cmd.h"

/* Fails if the image has proved damaged meanwhile: what was answered from it may be wrong. */
static int confirm(void *arg, struct pfs_reply *reply, int status)
{
	const struct pfs_answered *answered = arg;

	if (!answered->tree || !pfs_imagefile_failure(answered->tree))
		return status;
	return pfs_reply_fail(
		reply, PFS_EXIT_FAILURE,
		"%s" PFS_IMAGE_FILE_SUFFIX
		": damaged, and cannot be made anew from the store: what was printed may be wrong; "
		"unmount, if it is mounted, and run primefs check",
		answered->store);
}

#define VERB(verb)                                                                                 \
	static int verb(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)    \
	{                                                                                          \
		int status = confirm(arg, reply, PFS_EXIT_OK);                                     \
                                                                                                   \
		return status ? status                                                             \
			      : confirm(arg, reply, pfs_answer_##verb(arg, reply, words, n));      \
	}
VERB(dupes)
VERB(info)
VERB(query)
VERB(refresh)
VERB(resolve)
VERB(tree)
VERB(treemap)
#undef VERB

const struct pfs_verb pfs_answers[] = {
	{"dupes", dupes, false},     {"info", info, false},
	{"query", query, true},	     {"refresh", refresh, false},
	{"resolve", resolve, false}, {"tree", tree, false},
	{"treemap", treemap, true},  {0},
};
