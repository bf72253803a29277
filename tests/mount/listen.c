/* SPDX-License-Identifier: MIT */
/* listen SOCKET: prints what is sent to it, a line each, until it is killed.  With SOCKET /dev/log
 * it stands for the system log. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[4096];
	ssize_t n;

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	memcpy(address.sun_path, argv[1], strlen(argv[1]));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		perror(argv[1]);
		return 1;
	}
	while ((n = recv(fd, text, sizeof(text), 0)) >= 0) {
		(void)fwrite(text, 1, (size_t)n, stdout);
		(void)putchar('\n');
		(void)fflush(stdout);
	}
	return 1;
}
