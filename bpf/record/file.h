/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing a recording: frames with checksums. The file gets its name only when it is complete. */
#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct capture_file {
	FILE *stream;
	const char *path;
	char *temporary; /* written here, renamed to path at the end */
	uint64_t frames[32]; /* written so far, by type */
	uint64_t bytes;
	int error; /* errno of the first write that failed, 0 if none did */
};

bool capture_file_create(struct capture_file *file, const char *path, uint64_t magic, uint32_t version);
void capture_file_frame(struct capture_file *file, uint32_t type, const void *payload, size_t length);
/* Goes back to the first frame, which is written again, with as many bytes as it had. */
void capture_file_return(struct capture_file *file);
/* Gives the file its name. On failure, nothing new appears under that name. */
bool capture_file_finish(struct capture_file *file);
void capture_file_abandon(struct capture_file *file);

#endif
