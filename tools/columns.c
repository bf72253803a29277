/* SPDX-License-Identifier: MIT */
#include "tools/columns.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/checked.h"

#define GAP	  2u /* blanks between columns */
#define WIDTH_MIN 3u /* a name of one character, and the gap */

/* Fills in the widths of n columns; what a line then takes. */
static size_t lay_out(struct pfs_column_layout *columns, const size_t *names, size_t n_names)
{
	size_t line = 0;

	columns->rows = (n_names + columns->n - 1) / columns->n;
	for (size_t i = 0; i < columns->n; i++)
		columns->width[i] = WIDTH_MIN;
	for (size_t i = 0; i < n_names; i++) {
		size_t column = i / columns->rows;
		size_t width = names[i] + (column + 1 < columns->n ? GAP : 0);

		columns->width[column] = PFS_MAX(columns->width[column], width);
	}
	for (size_t i = 0; i < columns->n; i++)
		line += columns->width[i];
	return line;
}

int pfs_column_layout_fit(struct pfs_column_layout *columns, const size_t *names, size_t n,
			  size_t line)
{
	size_t most = PFS_MAX(line / WIDTH_MIN + (line % WIDTH_MIN != 0), (size_t)1);

	columns->n = PFS_MIN(most, n);
	columns->width = calloc(columns->n, sizeof(*columns->width));
	if (!columns->width)
		return -ENOMEM;
	while (lay_out(columns, names, n) >= line && columns->n > 1)
		columns->n--;
	return 0;
}

void pfs_column_layout_finish(struct pfs_column_layout *columns)
{
	free(columns->width);
}

size_t pfs_line_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return n && n <= UINT16_MAX ? n : 80;
}
