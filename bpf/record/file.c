/* SPDX-License-Identifier: GPL-2.0-only */
/* The capture file: frames with checksums. It gets its name when it is complete. */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "capture.h"

static void write_bytes(struct capture_file *file, const void *bytes, size_t length)
{
	if (!file->error && length && fwrite(bytes, length, 1, file->stream) != 1)
		file->error = errno ? errno : EIO;
	file->bytes += length;
}

bool capture_file_create(struct capture_file *file, const char *path, uint64_t magic, uint32_t version)
{
	struct capture_header header = { .magic = magic, .version = version };

	memset(file, 0, sizeof(*file));
	file->path = path;
	if (asprintf(&file->temporary, "%s.%d", path, (int)getpid()) < 0)
		return false;
	file->stream = fopen(file->temporary, "wxe");
	if (!file->stream)
		return false;
	write_bytes(file, &header, sizeof(header));
	return true;
}

void capture_file_frame(struct capture_file *file, uint32_t type, const void *payload, size_t length)
{
	struct capture_frame frame = {
		.type = type,
		.length = length,
		.checksum = crc32(0, payload, length),
	};

	write_bytes(file, &frame, sizeof(frame));
	write_bytes(file, payload, length);
	if (type < sizeof(file->frames) / sizeof(file->frames[0]))
		file->frames[type]++;
}

void capture_file_return(struct capture_file *file)
{
	if (fseek(file->stream, sizeof(struct capture_header), SEEK_SET) && !file->error)
		file->error = errno;
}

bool capture_file_finish(struct capture_file *file)
{
	if (fclose(file->stream) && !file->error)
		file->error = errno;
	file->stream = NULL;
	if (!file->error && rename(file->temporary, file->path))
		file->error = errno;
	if (file->error) {
		capture_file_abandon(file);
		return false;
	}
	free(file->temporary);
	file->temporary = NULL;
	return true;
}

void capture_file_abandon(struct capture_file *file)
{
	if (file->stream)
		fclose(file->stream);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	file->stream = NULL;
	file->temporary = NULL;
}
