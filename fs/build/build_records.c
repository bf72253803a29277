/* SPDX-License-Identifier: MIT */
/* Makes the records of nodes from the build's columns, and writes them. One thread makes a portion
 * while another writes the one before: SQLite writes on one thread and takes most of the time. */
#include "fs/build/build_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"

#define PORTION	      ((size_t)PFS_STORE_NODES * 64)
#define PROGRESS_STEP (PORTION * 8) /* records */

/* Returns the symlink's target that was set last, or NULL. */
static const struct pfs_build_target *target_of(const struct pfs_build *build, uint32_t node)
{
	uint64_t behind = PFS_SEARCH(i, 0, build->n_targets, build->targets[i].node <= node);

	return behind && build->targets[behind - 1].node == node ? &build->targets[behind - 1]
								 : NULL;
}

static uint32_t directory_mode(uint32_t mode)
{
	return S_IFDIR | (mode & 07777) | (mode & 0444) >> 2;
}

static void fill_default(const struct pfs_build *build, struct pfs_node_record *record,
			 bool directory)
{
	const struct stat *defaults = &build->options.defaults;

	record->mode = directory ? directory_mode(defaults->st_mode)
				 : S_IFREG | (defaults->st_mode & 07777);
	record->uid = defaults->st_uid;
	record->gid = defaults->st_gid;
	record->atime = pfs_time_of(defaults->st_atim);
	record->mtime = pfs_time_of(defaults->st_mtim);
	record->ctime = pfs_time_of(defaults->st_ctim);
}

static void fill_attr(const struct pfs_build *build, struct pfs_node_record *record, uint32_t node)
{
	const struct pfs_build_attr *attr = &build->attr[node];
	bool directory = build->state[node] & BUILD_DIRECTORY;

	record->mode = attr->mode;
	record->uid = attr->uid;
	record->gid = attr->gid;
	record->atime = (struct pfs_time){attr->sec[0], attr->nsec[0]};
	record->mtime = (struct pfs_time){attr->sec[1], attr->nsec[1]};
	record->ctime = (struct pfs_time){attr->sec[2], attr->nsec[2]};
	if (S_ISCHR(attr->mode) || S_ISBLK(attr->mode)) {
		record->rdev = (uint64_t)attr->size;
	} else if (directory && !S_ISDIR(attr->mode)) {
		record->mode = directory_mode(attr->mode);
	} else {
		record->size = attr->size;
		record->blocks = attr->blocks;
	}
	if (S_ISLNK(attr->mode)) {
		const struct pfs_build_target *target = target_of(build, node);

		record->target = target ? build->heap + target->offset : "";
		record->target_len = target ? target->len : 0;
		record->size = (int64_t)record->target_len;
	}
}

/* Returns the node's number as the caller of the build knows it. */
static uint32_t number_of(const struct pfs_build *build, uint32_t node)
{
	return node == build->at ? PFS_BUILD_ROOT : node;
}

/* Does not tell of the root of an existing store, unless nodes are added to the root itself. */
int pfs_build_tell(struct pfs_build *build, uint32_t node, uint64_t prime)
{
	const struct pfs_build_options *options = &build->options;
	bool is_ours = node || !build->at;

	return options->written && is_ours
		       ? options->written(options->arg, number_of(build, node), prime)
		       : 0;
}

struct portion {
	struct pfs_node_record record[PORTION];
	size_t first, n; /* which of writer->nodes these records are of */
};

struct writer {
	struct pfs_build *build;
	const uint32_t *nodes, *slot; /* as in pfs_build_write */
	size_t n;
	struct portion *written, *made; /* one is written while the other is made */
	int error;
};

/* ---- making them ---- */

static void make_record(const struct writer *writer, struct pfs_node_record *record, uint32_t node)
{
	const struct pfs_build *build = writer->build;
	uint32_t parent = build->parent[node];

	*record = (struct pfs_node_record){
		.prime = node ? build->prime[node] : PFS_ROOT_PRIME,
		.parent = !node	   ? 0
			  : parent ? build->prime[parent]
				   : PFS_ROOT_PRIME,
		.slot = writer->slot[node],
		.flags = build->flags[node],
		.name = build->heap + (build->name[node] >> 8),
		.name_len = build->name[node] & 0xff,
	};
	if (build->state[node] & BUILD_ATTR)
		fill_attr(build, record, node);
	else
		fill_default(build, record, build->state[node] & BUILD_DIRECTORY);
	if (build->options.number)
		build->options.number(build->options.arg, number_of(build, node), record);
}

static void make(const struct writer *writer, struct portion *portion)
{
	portion->n = PFS_MIN(writer->n - portion->first, PORTION);
	for (size_t i = 0; i < portion->n; i++)
		make_record(writer, &portion->record[i], writer->nodes[portion->first + i]);
}

/* ---- writing them ---- */

static void count(struct pfs_build *build, const struct pfs_node_record *record)
{
	build->report.nodes++;
	if (S_ISDIR(record->mode)) {
		build->report.directories++;
	} else {
		build->report.files++;
		build->report.bytes += (uint64_t)record->size;
	}
	if (build->options.progress && build->report.nodes % PROGRESS_STEP == 0)
		build->options.progress(build->options.arg, build->report.nodes,
					pfs_build_count(build));
}

static int put_records(struct pfs_store *store, const struct pfs_node_record *records, size_t n)
{
	if (n == PFS_STORE_NODES)
		return pfs_store_put_nodes(store, records);
	for (size_t i = 0; i < n; i++)
		PFS_TRY(pfs_store_put_node(store, &records[i]));
	return 0;
}

static int write_portion(struct writer *writer, const struct portion *portion)
{
	for (size_t i = 0; i < portion->n; i += PFS_STORE_NODES) {
		const struct pfs_node_record *records = &portion->record[i];
		const uint32_t *nodes = &writer->nodes[portion->first + i];
		size_t n = PFS_MIN(portion->n - i, (size_t)PFS_STORE_NODES);

		PFS_TRY(put_records(writer->build->store, records, n));
		for (size_t k = 0; k < n; k++) {
			count(writer->build, &records[k]);
			PFS_TRY(pfs_build_tell(writer->build, nodes[k], records[k].prime));
		}
	}
	return 0;
}

/* Part 0 writes a portion, part 1 makes the next one. */
static void do_part(void *context, size_t from, size_t to)
{
	struct writer *writer = context;

	for (; from < to; from++) {
		if (from)
			make(writer, writer->made);
		else
			writer->error = write_portion(writer, writer->written);
	}
}

static int write_all(struct writer *writer, struct pfs_pool *pool)
{
	make(writer, writer->written);
	while (writer->written->n && !writer->error) {
		struct portion *written = writer->written;

		writer->made->first = written->first + written->n;
		pfs_pool_run(pool, 2, 1, do_part, writer);
		writer->written = writer->made;
		writer->made = written;
	}
	return writer->error;
}

int pfs_build_write(struct pfs_build *build, struct pfs_pool *pool, const uint32_t *nodes, size_t n,
		    const uint32_t *slot)
{
	struct portion *portions = calloc(2, sizeof(*portions));
	struct writer writer = {
		.build = build,
		.nodes = nodes,
		.slot = slot,
		.n = n,
		.written = portions,
		.made = portions ? &portions[1] : NULL,
	};
	int error = portions ? write_all(&writer, pool) : -ENOMEM;

	free(portions);
	return error;
}
