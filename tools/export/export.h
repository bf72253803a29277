/* SPDX-License-Identifier: MIT */
/* tools/export/export.h - what the exporters of all formats share. */
#ifndef PFS_TOOLS_EXPORT_EXPORT_H
#define PFS_TOOLS_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_export {
	const char *store; /* its path, for messages */
	struct pfs_tree *tree;
	uint64_t root; /* of what is exported */
	FILE *out;
	int out_error;	/* the errno of a write to it that failed */
	bool nul_ended; /* paths */
	bool new_ids;	/* csv: number nodes without an id of their own */
	/* Attributes, without "user.": given, or for csv all that there are. */
	char **columns;
	size_t n_columns, columns_capacity;
	uint64_t left_out; /* nodes whose content could not be had; each has been reported */
};

struct pfs_export_format {
	const char *name;
	bool binary; /* nothing for a terminal */
	/* Writes it. Returns 0, also if `out` cannot be written; -ECANCELED if the reason has been
	 * said; or another error. */
	int (*write)(struct pfs_export *to);
};

extern const struct pfs_export_format pfs_export_paths, pfs_export_csv, pfs_export_tar;

/* Adds all attributes that nodes have; find: in the order of imports where they came as columns. */
PFS_MUST_CHECK int pfs_export_add_present(struct pfs_export *to);
PFS_MUST_CHECK int pfs_export_find_columns(struct pfs_export *to);

/* For csv: finds the table that the directory's nodes came in. -ENODATA: they came otherwise. */
PFS_MUST_CHECK int pfs_export_register(struct pfs_export *to);

/* Gets the value of user.COLUMN into `value`, which has room for PFS_ATTR_VALUE_MAX bytes; it is
 * empty if there is none. Returns its length, or a negative errno. */
PFS_MUST_CHECK ssize_t pfs_export_value(struct pfs_export *to, char *value, uint64_t ino,
					const char *column);

/* Adds a column unless it is there. */
PFS_MUST_CHECK int pfs_export_add_column(struct pfs_export *to, const char *name, size_t len);

/* Returns 1, which ends a walk, if `out` could not be written, which whoever closes it says; else
 * 0. */
int pfs_export_out_failed(struct pfs_export *to);

/* Says why the export ends; returns -ECANCELED. */
int pfs_export_fail(const struct pfs_export *from, const char *format, ...) PFS_PRINTF(2, 3);

#endif
