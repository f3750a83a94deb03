// Clients think for 10 to 30 ms, ask a pool of workers through one pipe, and await the answer on a pipe of their own.
// pool CLIENTS WORKERS SECONDS prints how many requests were answered in a second.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 100 };

static int requests[2], answers[MOST][2];
static long answered[MOST];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void compute(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		;
}

static void *client(void *arg)
{
	long own = (long)arg;
	unsigned int seed = own + 1;
	char byte;

	prctl(PR_SET_NAME, "client");
	do {
		usleep(10000 + rand_r(&seed) % 20000);
		compute(20e-6);
		byte = own;
	} while (write(requests[1], &byte, 1) == 1 && read(answers[own][0], &byte, 1) == 1);
	return NULL;
}

static void *worker(void *arg)
{
	long own = (long)arg;
	char byte;

	prctl(PR_SET_NAME, "worker");
	while (read(requests[0], &byte, 1) == 1) {
		compute(200e-6);
		answered[own]++;
		if (write(answers[(int)byte][1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static long all(void)
{
	long sum = 0;

	for (int i = 0; i < MOST; i++)
		sum += answered[i];
	return sum;
}

int main(int argc, char **argv)
{
	int clients = argc == 4 ? atoi(argv[1]) : 0, workers = argc == 4 ? atoi(argv[2]) : 0;
	pthread_t thread;

	if (clients < 1 || clients > MOST || workers < 1 || workers > MOST || pipe(requests)) {
		fprintf(stderr, "pool CLIENTS WORKERS SECONDS (allowed: 1 to %d of each)\n", MOST);
		return 2;
	}
	for (long i = 0; i < workers; i++)
		pthread_create(&thread, NULL, worker, (void *)i);
	for (long i = 0; i < clients; i++) {
		if (pipe(answers[i]))
			return 1;
		pthread_create(&thread, NULL, client, (void *)i);
	}
	usleep(300000);
	long before = all();
	double start = now();
	usleep(atof(argv[3]) * 1e6);
	printf("%.1f requests per second\n", (all() - before) / (now() - start));
	return 0;
}
