/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel needs for its decisions to be recorded, and the first of it that is missing. */
#ifndef CW_RECORD_REQUIRE_H
#define CW_RECORD_REQUIRE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What to do on a kernel that cannot be recorded. */
#define INSTEAD                                                                                  \
	"`coreward shadow` watches placements on kernels from 6.9 on that have BTF, and vm/parity " \
	"records Debian's kernels in guests"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define KALLSYMS "/proc/kallsyms"

/* Does a list in the format of /proc/kallsyms have the symbol? */
static inline bool lists_symbol(const char *kallsyms, const char *symbol)
{
	FILE *file = fopen(kallsyms, "r");
	char line[512], name[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %*s %255s", name) == 1 && !strcmp(name, symbol);
	if (file)
		fclose(file);
	return found;
}

/*
 * What the kernel lacks that shows before the programs are loaded; NULL: nothing. The names of the
 * domains' flags are read from a variable that BTF does not have, so it has to be in kallsyms.
 */
static inline const char *missing_requirement(const char *btf, const char *kallsyms)
{
	if (access(btf, F_OK))
		return "it has no BTF (CONFIG_DEBUG_INFO_BTF)";
	if (!lists_symbol(kallsyms, "sd_flag_debug"))
		return "its /proc/kallsyms does not list variables (CONFIG_KALLSYMS_ALL)";
	return NULL;
}

#endif
