/* SPDX-License-Identifier: MIT */
#include "fs/query/output/treemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "base/siphash.h"
#include "fs/query/output/format.h"

#define AREA_MIN   24.0 /* square pixels; smaller ones are part of a rest */
#define HEADER	   15.0 /* height of a directory's name */
#define MARGIN	   2.0
#define LABEL_MIN  28.0 /* width from which there is a label */
#define CHAR_WIDTH 6.2
#define TITLE	   24.0

struct tile {
	uint64_t ino, parent, size;
	size_t name, name_len; /* in names */
	bool is_directory;
};

struct pfs_treemap {
	double width, height;
	struct tile *tiles; /* by parent, then size, the largest first, once it is written */
	size_t n, capacity;
	char *names;
	size_t used, names_capacity;
	struct pfs_out *out;
};

struct box {
	double x, y, w, h;
};

int pfs_treemap_create(struct pfs_treemap **out, unsigned width, unsigned height)
{
	struct pfs_treemap *treemap = calloc(1, sizeof(*treemap));

	*out = treemap;
	if (!treemap)
		return -ENOMEM;
	treemap->width = PFS_MAX(width, 16);
	treemap->height = PFS_MAX(height, 16);
	return 0;
}

void pfs_treemap_close(struct pfs_treemap *treemap)
{
	if (!treemap)
		return;
	free(treemap->tiles);
	free(treemap->names);
	free(treemap);
}

void pfs_treemap_clear(struct pfs_treemap *treemap)
{
	treemap->n = treemap->used = 0;
}

/* ---- rows ---- */

size_t pfs_treemap_statement(const struct pfs_treemap *treemap, char sql[PFS_TREEMAP_STATEMENT],
			     uint64_t ino)
{
	int n = snprintf(
		sql, PFS_TREEMAP_STATEMENT,
		"SELECT ino, parent, subtree_size, type, name FROM nodes WHERE "
		"subtree_size >= max(1, (SELECT subtree_size FROM nodes WHERE ino = %llu) / "
		"%u)",
		(unsigned long long)ino,
		(unsigned)(treemap->width * treemap->height / AREA_MIN) + 1);

	return (size_t)n;
}

int pfs_treemap_row(struct pfs_treemap *treemap, const struct pfs_query *query)
{
	int64_t size = pfs_query_integer(query, 2);
	struct pfs_sql_value type, name;

	pfs_query_value(query, 3, &type);
	pfs_query_value(query, 4, &name);
	PFS_TRY(pfs_grow(&treemap->tiles, &treemap->capacity, treemap->n + 1,
			 sizeof(*treemap->tiles)));
	PFS_TRY(pfs_grow(&treemap->names, &treemap->names_capacity, treemap->used + name.size + 1,
			 1));
	treemap->tiles[treemap->n++] = (struct tile){
		.ino = (uint64_t)pfs_query_integer(query, 0),
		.parent = (uint64_t)pfs_query_integer(query, 1),
		.size = size > 0 ? (uint64_t)size : 0,
		.name = treemap->used,
		.name_len = name.size,
		.is_directory = type.size == 1 && type.bytes[0] == 'd',
	};
	if (name.size)
		memcpy(treemap->names + treemap->used, name.bytes, name.size);
	treemap->used += name.size;
	return 0;
}

static int compare_tiles(const void *a, const void *b)
{
	const struct tile *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* The directory's children; *n of them. */
static const struct tile *children_of(const struct pfs_treemap *treemap, size_t *n, uint64_t ino)
{
	size_t low = PFS_SEARCH(i, 0, treemap->n, treemap->tiles[i].parent < ino), end;

	for (end = low; end < treemap->n && treemap->tiles[end].parent == ino; end++)
		;
	*n = end - low;
	return treemap->tiles + low;
}

/* ---- writing ---- */

/* Prints at most max characters; what XML cannot hold becomes U+FFFD. */
static void print_escaped(struct pfs_out *out, const char *text, size_t size, size_t max)
{
	size_t i = 0, n;

	for (; i < size && max > 0; i += n, max--) {
		unsigned char c = (unsigned char)text[i];

		n = pfs_utf8_length(text + i, size - i);
		if (n == 0 || c < 0x20 || c == 0x7f ||
		    (n == 3 && memcmp(text + i, "\xef\xbf", 2) == 0 &&
		     (unsigned char)text[i + 2] >= 0xbe))
			pfs_out_text(out, "\xef\xbf\xbd");
		else if (c == '&')
			pfs_out_text(out, "&amp;");
		else if (c == '<')
			pfs_out_text(out, "&lt;");
		else if (c == '>')
			pfs_out_text(out, "&gt;");
		else
			pfs_out_bytes(out, text + i, n);
		n = n ? n : 1;
	}
	if (i < size)
		pfs_out_text(out, "\xe2\x80\xa6");
}

static void print_size(struct pfs_out *out, uint64_t size)
{
	static const char units[] = "KMGTPE";
	double value = (double)size;
	unsigned unit = 0;

	if (size < 1024) {
		pfs_out_print(out, "%llu B", (unsigned long long)size);
		return;
	}
	for (value /= 1024; value >= 1023.95 && units[unit + 1]; unit++)
		value /= 1024;
	pfs_out_print(out, "%.1f %ciB", value, units[unit]);
}

/* The colour of an extension; files without one are grey. */
static void print_colour(struct pfs_out *out, const char *name, size_t len)
{
	const char *dot = len > 1 ? memrchr(name + 1, '.', len - 1) : NULL;
	uint64_t hash;

	if (!dot) {
		pfs_out_text(out, "#c9cdd2");
		return;
	}
	hash = pfs_siphash(dot + 1, len - 1 - (size_t)(dot - name), 0, 0);
	pfs_out_print(out, "hsl(%u,%u%%,%u%%)", (unsigned)(hash % 360),
	      45 + (unsigned)(hash / 360 % 3) * 12, 66 + (unsigned)(hash / 1080 % 3) * 6);
}

static void print_label(struct pfs_out *out, const struct box *box, const char *name, size_t len)
{
	if (box->w < LABEL_MIN || box->h < HEADER - 2)
		return;
	pfs_out_print(out, "<text x=\"%.1f\" y=\"%.1f\">", box->x + 3, box->y + 11.5);
	print_escaped(out, name, len, (size_t)((box->w - 6) / CHAR_WIDTH));
	pfs_out_text(out, "</text>");
}

/* colour NULL: by the name. */
static void print_box(struct pfs_out *out, const struct box *box, const char *colour,
		      const char *name, size_t len, uint64_t size)
{
	pfs_out_print(out, "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"",
		      box->x, box->y, box->w, box->h);
	if (colour)
		pfs_out_text(out, colour);
	else
		print_colour(out, name, len);
	pfs_out_text(out, "\"/><title>");
	print_escaped(out, name, len, SIZE_MAX);
	pfs_out_text(out, ", ");
	print_size(out, size);
	pfs_out_text(out, "</title>");
	print_label(out, box, name, len);
	pfs_out_text(out, "</g>\n");
}

/* ---- layout ---- */

/* The worst ratio of sides in a row of boxes along a side, of that sum, largest and smallest area.
 */
static double worst_ratio(double side, double sum, double largest, double smallest)
{
	double a = side * side * largest / (sum * sum), b = sum * sum / (side * side * smallest);

	return PFS_MAX(a, b);
}

/* Cuts from *left, along its shorter side, a strip of the area `sum`. */
static struct box cut_strip(struct box *left, double sum)
{
	struct box strip = *left;

	if (left->w >= left->h) {
		strip.w = PFS_MIN(sum / left->h, left->w);
		left->x += strip.w;
		left->w -= strip.w;
	} else {
		strip.h = PFS_MIN(sum / left->w, left->h);
		left->y += strip.h;
		left->h -= strip.h;
	}
	return strip;
}

/* The part of a strip that has the area; *at moves on along it. */
static struct box cut_box(const struct box *strip, bool upright, double *at, double area)
{
	struct box box = *strip;

	if (upright) {
		box.h = area / strip->w;
		box.y += *at;
		*at += box.h;
	} else {
		box.w = area / strip->h;
		box.x += *at;
		*at += box.w;
	}
	return box;
}

static void draw_tile(struct pfs_treemap *treemap, const struct tile *tile, const struct box *box);

/* As many of the tiles, which come in order of size, as make the squarest boxes in one strip. */
static size_t choose_strip(const struct box *left, double *sum, const struct tile *tiles, size_t n,
			   double scale)
{
	double side = PFS_MIN(left->w, left->h), largest = (double)tiles[0].size * scale;
	double worst = worst_ratio(side, largest, largest, largest);
	size_t i;

	*sum = largest;
	for (i = 1; i < n; i++) {
		double area = (double)tiles[i].size * scale;
		double ratio = worst_ratio(side, *sum + area, largest, area);

		if (ratio > worst)
			break;
		worst = ratio;
		*sum += area;
	}
	return i;
}

/* Draws a directory's children into its box, and what of its size is none of theirs. */
static void draw_children(struct pfs_treemap *treemap, const struct tile *dir, struct box left)
{
	double scale = left.w * left.h / (double)dir->size;
	uint64_t rest = dir->size;
	const struct tile *tiles;
	size_t n, i;

	tiles = children_of(treemap, &n, dir->ino);
	while (n > 0 && (double)tiles->size * scale >= AREA_MIN && left.w > 1 && left.h > 1) {
		bool upright = left.w >= left.h;
		double sum, at = 0;
		size_t count = choose_strip(&left, &sum, tiles, n, scale);
		struct box strip = cut_strip(&left, sum);

		for (i = 0; i < count; i++) {
			struct box box =
				cut_box(&strip, upright, &at, (double)tiles[i].size * scale);

			draw_tile(treemap, &tiles[i], &box);
			rest -= PFS_MIN(rest, tiles[i].size);
		}
		tiles += count;
		n -= count;
	}
	if (rest > 0 && left.w >= 1 && left.h >= 1)
		print_box(treemap->out, &left, "#e9ebee", "others", strlen("others"), rest);
}

/* What is inside a directory's frame; false if there is no room for anything. */
static bool inside(struct box *box)
{
	double header = box->w >= LABEL_MIN && box->h >= 2 * HEADER ? HEADER : MARGIN;

	box->x += MARGIN;
	box->y += header;
	box->w -= 2 * MARGIN;
	box->h -= header + MARGIN;
	return box->w > 3 && box->h > 3 && box->w * box->h >= 2 * AREA_MIN;
}

/* Recursion ends with the frames, two pixels narrower each. NOLINTNEXTLINE(misc-no-recursion) */
static void draw_tile(struct pfs_treemap *treemap, const struct tile *tile, const struct box *box)
{
	const char *name = treemap->names + tile->name;
	struct box inner = *box;

	if (!tile->is_directory) {
		print_box(treemap->out, box, NULL, name, tile->name_len, tile->size);
		return;
	}
	print_box(treemap->out, box, "#f7f8fa", name, tile->name_len, tile->size);
	if (inside(&inner))
		draw_children(treemap, tile, inner);
}

static void write_all(struct pfs_treemap *treemap, uint64_t ino, const char *title)
{
	struct box box = {0, TITLE, treemap->width, treemap->height - TITLE};
	struct tile *root = NULL;
	size_t i;

	for (i = 0; i < treemap->n && !root; i++)
		if (treemap->tiles[i].ino == ino)
			root = &treemap->tiles[i];
	pfs_out_print(treemap->out,
	      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
	      "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
	      "<style>rect{stroke:#fff;stroke-width:.6}text{fill:#222}</style>\n"
	      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	      "<text x=\"4\" y=\"17\" font-size=\"14\">",
	      treemap->width, treemap->height, treemap->width, treemap->height);
	print_escaped(treemap->out, title, strlen(title), 120);
	pfs_out_text(treemap->out, ", ");
	print_size(treemap->out, root ? root->size : 0);
	pfs_out_text(treemap->out, "</text>\n");
	if (root && root->is_directory)
		draw_children(treemap, root, box);
	else if (root)
		draw_tile(treemap, root, &box);
	pfs_out_text(treemap->out, "</svg>\n");
	pfs_out_flush(treemap->out);
}

int pfs_treemap_write(struct pfs_treemap *treemap, const struct pfs_sink *sink, uint64_t ino,
		      const char *title)
{
	struct pfs_out out;
	int error;

	PFS_TRY(pfs_out_init(&out, sink));
	treemap->out = &out;
	if (treemap->n)
		qsort(treemap->tiles, treemap->n, sizeof(*treemap->tiles), compare_tiles);
	write_all(treemap, ino, title);
	error = out.error;
	pfs_out_finish(&out);
	treemap->out = NULL;
	return error;
}
