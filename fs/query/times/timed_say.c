/* SPDX-License-Identifier: MIT */
/* What the walk over a statement with times has to say: what is put into the text, and a first
 * doubt. */
#include "fs/query/times/timed_impl.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"

void pfs_timed_doubt(struct pfs_timed *t, uint32_t at, const char *format, ...)
{
	va_list values;

	if (*t->doubt->text)
		return;
	va_start(values, format);
	(void)vsnprintf(t->doubt->text, sizeof(t->doubt->text), format, values);
	va_end(values);
	t->doubt->offset = at;
}

void pfs_timed_insert(struct pfs_timed *t, uint32_t at, uint32_t old_len,
		      enum pfs_insertion_kind kind, const char *text)
{
	if (t->error)
		return;
	t->error = pfs_grow(&t->insertions, &t->capacity, t->n + 1, sizeof(*t->insertions));
	if (t->error)
		return;
	t->insertions[t->n] = (struct pfs_insertion){at, old_len, kind, t->n, text};
	t->n++;
}
