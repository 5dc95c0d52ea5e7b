/* A wall clock that is wrong by LAB_CLOCK_S whole seconds, for every program it is preloaded into; the monotonic clock
 * stays. libfaketime cannot be used for this: fio 3.33 does not start under it (its condition variables hang).
 * Without headers, so that a compiler alone is enough. */
struct timespec { long tv_sec; long tv_nsec; };
struct timeval { long tv_sec; long tv_usec; };
extern void *dlsym(void *, const char *);
extern char *getenv(const char *);
extern long atol(const char *);

static int (*real_clock_gettime)(int, struct timespec *);
static long shift_s;

int clock_gettime(int clock, struct timespec *now)
{
    int rc;
    if (!real_clock_gettime) {
        char *wanted = getenv("LAB_CLOCK_S");
        shift_s = wanted ? atol(wanted) : 0;
        real_clock_gettime = dlsym((void *) -1L, "clock_gettime"); /* RTLD_NEXT */
    }
    rc = real_clock_gettime(clock, now);
    if (rc == 0 && (clock == 0 || clock == 5)) /* CLOCK_REALTIME, CLOCK_REALTIME_COARSE */
        now->tv_sec += shift_s;
    return rc;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    int rc = clock_gettime(0, &precise);
    (void) zone;
    if (rc == 0) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return rc;
}

long time(long *where)
{
    struct timespec precise;
    clock_gettime(0, &precise);
    if (where)
        *where = precise.tv_sec;
    return precise.tv_sec;
}
