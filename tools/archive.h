/* SPDX-License-Identifier: MIT */
/* tools/archive.h - libarchive, loaded when an archive is read or written: with what it needs
 * itself, XML, Unicode and C++, it would make every command begin a millisecond later. */
#ifndef PFS_TOOLS_ARCHIVE_H
#define PFS_TOOLS_ARCHIVE_H

#if PFS_ARCHIVE

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"

#define PFS_ARCHIVE_FUNCTIONS(X)                                                                                               \
	X(entry_acl_next)                                                                                                      \
	X(entry_acl_reset) X(entry_atime_is_set) X(entry_clear) X(entry_copy_pathname) X(entry_copy_stat) X(                   \
		entry_copy_symlink) X(entry_ctime_is_set) X(entry_free) X(entry_hardlink) X(entry_hardlink_utf8)               \
		X(entry_mtime_is_set) X(entry_new) X(entry_pathname) X(entry_pathname_utf8) X(                                 \
			entry_set_nlink) X(entry_set_size) X(entry_size) X(entry_size_is_set) X(entry_sparse_add_entry)        \
			X(entry_stat) X(entry_symlink) X(entry_symlink_utf8) X(entry_xattr_add_entry) X(                       \
				entry_xattr_next) X(entry_xattr_reset) X(error_string) X(filter_code)                          \
				X(format) X(read_data) X(read_data_block) X(read_free) X(read_new) X(                          \
					read_next_header) X(read_open1) X(read_open_memory) X(read_set_callback_data)          \
					X(read_set_read_callback) X(read_set_seek_callback) X(                                 \
						read_support_filter_all) X(read_support_format_7zip) X(read_support_format_ar) \
						X(read_support_format_cab) X(read_support_format_cpio) X(                      \
							read_support_format_empty) X(read_support_format_iso9660)              \
							X(read_support_format_lha) X(read_support_format_rar) X(               \
								read_support_format_raw) X(read_support_format_rar5)           \
								X(read_support_format_tar) X(read_support_format_warc) X(      \
									read_support_format_xar) X(read_support_format_zip)    \
									X(set_error) X(write_close) X(                         \
										write_data) X(write_finish_entry)              \
										X(write_free) X(write_header) X(               \
											write_new) X(write_open_FILE)          \
											X(write_set_format_pax)                \
												X(write_set_options)

/* archive_read_new is pfs_archive.read_new, and so on; not before it is loaded. */
struct pfs_archive_functions {
#define PFS_ARCHIVE_MEMBER(name) __typeof__(archive_##name) *name;
	PFS_ARCHIVE_FUNCTIONS(PFS_ARCHIVE_MEMBER)
#undef PFS_ARCHIVE_MEMBER
	__typeof__(archive_errno) *error_number; /* errno is a macro */
};
extern struct pfs_archive_functions pfs_archive;

/* Any number of times, by one thread.  -ENOENT: there is none; *reason, unless NULL, is a line. */
PFS_MUST_CHECK int pfs_archive_load(const char **reason);

#endif
#endif
