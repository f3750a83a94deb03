/* SPDX-License-Identifier: GPL-2.0-only */
/* What the recorder says that a kernel lacks. */
#include <stdlib.h>

#include "tests/test.h"

#include "record/require.h"

/* A file with this text. */
static const char *file_of(const char *text)
{
	static char names[4][32];
	static int used;
	char *name = names[used++];
	FILE *file;

	strcpy(name, "/tmp/coreward-require-XXXXXX");
	file = fdopen(mkstemp(name), "w");
	fputs(text, file);
	fclose(file);
	return name;
}

static void test_missing_requirements(void)
{
	const char *functions = file_of("ffffffff81000000 T _stext\nffffffff810d9c60 t select_task_rq_fair\n");
	const char *all = file_of("0000000000000000 d sd_flag_debug_other\n0000000000000000 d sd_flag_debug\n");
	const char *module = file_of("ffffffffc0000000 r sd_flag_debug [module]\n");

	CHECK(!missing_requirement(functions, all));
	CHECK(!missing_requirement(functions, module));
	CHECK(strstr(missing_requirement(functions, functions), "CONFIG_KALLSYMS_ALL"));
	CHECK(strstr(missing_requirement("/no/such/file", all), "CONFIG_DEBUG_INFO_BTF"));
	CHECK(strstr(missing_requirement(functions, "/no/such/file"), "CONFIG_KALLSYMS_ALL"));
	unlink(functions);
	unlink(all);
	unlink(module);
}

int main(void)
{
	test_missing_requirements();
	return test_report("require");
}
