/* SPDX-License-Identifier: MIT */
#include "tools/gnu/ls_print.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/columns.h"
#include "tools/gnu/long_fields.h"
#include "tools/gnu/quote.h"

/* seconds: for later times the time of day is printed, else the year */
#define HALF_A_YEAR (31556952 / 2)
#define TAB	    8u

/* ---- at length ---- */
struct widths {
	size_t ino, nlink, user, group, size, major, minor;
};

static void widen(size_t *width, size_t n)
{
	*width = PFS_MAX(*width, n);
}

static size_t digits(uint64_t n)
{
	size_t count = 1;

	while (n /= 10)
		count++;
	return count;
}

/* The result is valid as long as `text` is. */
static const char *size_text(char text[PFS_DIGITS], size_t *len, const struct pfs_ls_style *style,
			     int64_t size)
{
	if (!style->human)
		return pfs_decimal(text, len, (uint64_t)size);
	pfs_print_human(text, (uint64_t)size);
	*len = strlen(text);
	return text;
}

/* Returns a name, or a number if there is no name or none is wanted; *named: it is a name. */
static const char *owner_text(char text[PFS_DIGITS], size_t *len, bool *named,
			      const struct pfs_ls_style *style, uint32_t id,
			      const char *(*name_of)(uint32_t id, size_t *len))
{
	const char *name = style->numeric ? NULL : name_of(id, len);

	*named = name;
	return name ? name : pfs_decimal(text, len, id);
}

static bool is_device(const struct pfs_ls_entry *e)
{
	return e->type == 'b' || e->type == 'c';
}

static void measure_long(struct widths *w, const struct pfs_ls_style *style,
			 const struct pfs_ls_entry *e)
{
	char text[PFS_DIGITS];
	bool named;
	size_t len;

	widen(&w->nlink, digits(e->nlink));
	(void)owner_text(text, &len, &named, style, e->uid, pfs_user_name);
	widen(&w->user, len);
	(void)owner_text(text, &len, &named, style, e->gid, pfs_group_name);
	widen(&w->group, len);
	if (is_device(e)) {
		widen(&w->major, digits(major(e->rdev)));
		widen(&w->minor, digits(minor(e->rdev)));
		len = w->major + 2 + w->minor;
	} else {
		(void)size_text(text, &len, style, e->size);
	}
	widen(&w->size, len);
}

static struct widths measure(const struct pfs_ls_style *style,
			 const struct pfs_ls_entry *entries,
			     size_t n)
{
	struct widths w = {0};

	for (size_t i = 0; i < n && style->inodes; i++)
		widen(&w.ino, digits(entries[i].ino));
	for (size_t i = 0; i < n && style->form == PFS_LS_LONG; i++)
		measure_long(&w, style, &entries[i]);
	return w;
}

static void put_owner(struct pfs_stdout *out, const struct pfs_ls_style *style, size_t width,
		      uint32_t id, const char *(*name_of)(uint32_t id, size_t *len))
{
	char text[PFS_DIGITS];
	bool named;
	size_t len;
	const char *owner = owner_text(text, &len, &named, style, id, name_of);

	if (named)
		pfs_stdout_left(out, owner, len, width);
	else
		pfs_stdout_right(out, owner, len, width);
	pfs_stdout_char(out, ' ');
}

static bool is_recent(time_t now, time_t seconds)
{
	return seconds <= now && seconds > now - HALF_A_YEAR;
}

static void put_long(struct pfs_stdout *out, const struct pfs_ls_style *style,
		     const struct widths *w, const struct pfs_ls_entry *e)
{
	static struct pfs_dates dates = {.is_recent = is_recent};
	char mode[PFS_MODE_SIZE], text[PFS_DIGITS];
	const char *field;
	size_t len;

	pfs_print_mode(mode, e->type, e->mode);
	pfs_stdout_put(out, mode, PFS_MODE_SIZE - 1);
	pfs_stdout_char(out, ' ');
	(void)pfs_stdout_number(out, e->nlink, w->nlink);
	pfs_stdout_char(out, ' ');
	put_owner(out, style, w->user, e->uid, pfs_user_name);
	put_owner(out, style, w->group, e->gid, pfs_group_name);
	if (is_device(e)) {
		(void)pfs_stdout_number(out, major(e->rdev), w->size - 2 - w->minor);
		pfs_stdout_put(out, ", ", 2);
		(void)pfs_stdout_number(out, minor(e->rdev), w->minor);
	} else {
		field = size_text(text, &len, style, e->size);
		pfs_stdout_right(out, field, len, w->size);
	}
	pfs_stdout_char(out, ' ');
	field = pfs_date(&dates, &len, e->mtime);
	pfs_stdout_put(out, field, len);
	pfs_stdout_char(out, ' ');
}

/* ---- entries ---- */

/* Entries that are printed together. */
struct page {
	struct pfs_stdout *out;
	const struct pfs_ls_style *style;
	const struct pfs_ls_entry *entries;
	size_t n;
	struct widths widths;
	/* some names have quotes, and the others are indented to the text within them */
	bool aligned;
};

static struct page begin(struct pfs_stdout *out, const struct pfs_ls_style *style,
			 const struct pfs_ls_entry *entries, size_t n, size_t n_measured)
{
	struct page page = {out, style, entries, n, .widths = measure(style, entries, n_measured)};

	for (size_t i = 0; i < n && style->quotes && style->form != PFS_LS_LINES && !page.aligned;
	     i++)
		page.aligned = pfs_needs_quotes(entries[i].name, entries[i].len, false);
	return page;
}

static void put_quoted(struct pfs_stdout *out, const char *name, size_t len, bool colon)
{
	if (PFS_QUOTED_SIZE(len) > sizeof(out->bytes) - out->n)
		pfs_stdout_flush(out);
	if (PFS_QUOTED_SIZE(len) > sizeof(out->bytes))
		pfs_stdout_name(out, name, len, true);
	else
		out->n += pfs_quote_name(out->bytes + out->n, name, len, colon);
}

static void put_name(const struct page *page, const struct pfs_ls_entry *e)
{
	if (page->aligned && !pfs_needs_quotes(e->name, e->len, false))
		pfs_stdout_char(page->out, ' ');
	if (page->style->quotes)
		put_quoted(page->out, e->name, e->len, false);
	else
		pfs_stdout_put(page->out, e->name, e->len);
}

static void put_target(const struct page *page, const struct pfs_ls_entry *e)
{
	pfs_stdout_put(page->out, " -> ", 4);
	if (page->style->quotes)
		put_quoted(page->out, e->target, e->target_len, false);
	else
		pfs_stdout_put(page->out, e->target, e->target_len);
}

static void put_entry(const struct page *page, const struct pfs_ls_entry *e)
{
	if (page->style->inodes) {
		(void)pfs_stdout_number(page->out, e->ino, page->widths.ino);
		pfs_stdout_char(page->out, ' ');
	}
	if (page->style->form == PFS_LS_LONG)
		put_long(page->out, page->style, &page->widths, e);
	put_name(page, e);
	if (page->style->form == PFS_LS_LONG && e->type == 'l')
		put_target(page, e);
}

/* ---- columns ---- */

/* Returns the width that put_entry takes on the terminal. */
static size_t shown_width(const struct page *page, const struct pfs_ls_entry *e)
{
	char quoted[PFS_QUOTED_SIZE(PATH_MAX)];
	size_t width = page->style->inodes ? page->widths.ino + 1 : 0;

	if (!page->style->quotes || e->len > PATH_MAX)
		return width + pfs_name_width(e->name, e->len);
	width += page->aligned && !pfs_needs_quotes(e->name, e->len, false);
	return width + pfs_name_width(quoted, pfs_quote_name(quoted, e->name, e->len, false));
}

/* Uses tabs where they fit, as ls(1) does. */
static void put_gap(struct pfs_stdout *out, size_t from, size_t to)
{
	while (from < to) {
		bool tab = to / TAB > (from + 1) / TAB;

		pfs_stdout_char(out, tab ? '\t' : ' ');
		from = tab ? from / TAB * TAB + TAB : from + 1;
	}
}

static void put_row(const struct page *page, const struct pfs_column_layout *columns,
		    const size_t *widths, size_t row)
{
	size_t at = 0;

	for (size_t i = row, column = 0; i < page->n; i += columns->rows, column++) {
		put_entry(page, &page->entries[i]);
		if (i + columns->rows < page->n)
			put_gap(page->out, at + widths[i], at + columns->width[column]);
		at += columns->width[column];
	}
	pfs_stdout_char(page->out, '\n');
}

static int put_columns(const struct page *page)
{
	size_t *widths PFS_FREE = calloc(page->n + 1, sizeof(*widths));
	struct pfs_column_layout columns;

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < page->n; i++)
		widths[i] = shown_width(page, &page->entries[i]);
	PFS_TRY(pfs_column_layout_fit(&columns, widths, page->n, page->style->line));
	for (size_t row = 0; row < columns.rows; row++)
		put_row(page, &columns, widths, row);
	pfs_column_layout_finish(&columns);
	return 0;
}

/* ---- the whole ---- */

int pfs_ls_put(struct pfs_stdout *out, const struct pfs_ls_style *style,
	       const struct pfs_ls_entry *entries, size_t n, size_t n_measured)
{
	const struct page page = begin(out, style, entries, n, n_measured);

	if (n && style->form == PFS_LS_COLUMNS)
		return put_columns(&page);
	for (size_t i = 0; i < n; i++) {
		put_entry(&page, &entries[i]);
		pfs_stdout_char(out, '\n');
	}
	return 0;
}

void pfs_ls_put_total(struct pfs_stdout *out, const struct pfs_ls_style *style,
		      const struct pfs_ls_entry *entries, size_t n)
{
	char text[PFS_HUMAN_SIZE];
	uint64_t blocks = 0;

	for (size_t i = 0; i < n; i++)
		blocks += (uint64_t)entries[i].blocks;
	pfs_stdout_text(out, "total ");
	if (style->human) {
		pfs_print_human(text, blocks * 512);
		pfs_stdout_text(out, text);
	} else {
		(void)pfs_stdout_number(out, (blocks + 1) / 2, 0);
	}
	pfs_stdout_char(out, '\n');
}

void pfs_ls_put_heading(struct pfs_stdout *out, const struct pfs_ls_style *style, const char *path,
			size_t len)
{
	if (style->quotes)
		put_quoted(out, path, len, true);
	else
		pfs_stdout_put(out, path, len);
	pfs_stdout_put(out, ":\n", 2);
}
