/* Logs every container that a library registers with the CUDA runtime.
 *
 * Preloaded, it passes the call on to the real runtime. Built with -DSTUB as libcudart.so.13 it takes the
 * runtime's place. The log, appended to the file named by WHEELSLIM_SPY_LOG, has one line for each thing:
 *   register FILE VERSION SIZE            a call of __cudaRegisterFatBinary
 *   prelinked SIZE                        a container that a version 2 wrapper brings along
 *   entry KIND SM FLAGS SIZE HASH         an entry of the container above: header and payload, FNV-1a
 *   bad WHAT                              bytes that are no container
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wrapper { uint32_t magic, version; const unsigned char *container; void **prelinked; };

static uint32_t u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint64_t u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, 8); return v; }

static void log_entries(FILE *log, const unsigned char *container) {
    if (u32(container) != 0xBA55ED50u) { fprintf(log, "bad magic\n"); return; }
    const unsigned char *p = container + 16, *end = p + u64(container + 8);
    while (p < end) {
        uint64_t size = u32(p + 4) + u64(p + 8), hash = 0xcbf29ce484222325u;
        if (u32(p + 4) < 64 || p + size > end) { fprintf(log, "bad entry\n"); return; }
        for (uint64_t i = 0; i < size; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
        fprintf(log, "entry %u %u %llu %llu %016llx\n", u32(p) & 0xffff, u32(p + 28),
                (unsigned long long)u64(p + 40), (unsigned long long)size, (unsigned long long)hash);
        p += size;
    }
}

static void log_wrapper(const struct wrapper *w) {
    const char *path = getenv("WHEELSLIM_SPY_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    Dl_info info;
    const char *file = dladdr((void *)w, &info) && info.dli_fname ? info.dli_fname : "?";
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    if (w->magic != 0x466243B1u) fprintf(log, "bad wrapper\n");
    fprintf(log, "register %s %u %llu\n", base, w->version, (unsigned long long)u64(w->container + 8));
    log_entries(log, w->container);
    for (int i = 0; w->version == 2 && w->prelinked && w->prelinked[i]; i++) {
        fprintf(log, "prelinked %llu\n", (unsigned long long)u64((unsigned char *)w->prelinked[i] + 8));
        log_entries(log, w->prelinked[i]);
    }
    fclose(log);
}

#ifdef STUB
void **__cudaRegisterFatBinary(void *w) { static void *handle; log_wrapper(w); return &handle; }
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterFunction(void) {}
void __cudaRegisterVar(void) {}
char __cudaInitModule(void **handle) { (void)handle; return 0; }
int __cudaGetKernel(void) { return 100; }
int __cudaLaunchKernel(void) { return 100; }
int cudaLaunchKernel(void) { return 100; }
unsigned __cudaPushCallConfiguration(void) { return 0; }
int __cudaPopCallConfiguration(void) { return 0; }
int cudaGetLastError(void) { return 100; } /* cudaErrorNoDevice */
#else
void **__cudaRegisterFatBinary(void *w) {
    static void *handle;
    static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
    void **(*real)(void *) = (void **(*)(void *))dlsym(RTLD_NEXT, "__cudaRegisterFatBinary");
    log_wrapper(w);
    for (int i = 0; !real && i < 3; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime) real = (void **(*)(void *))dlsym(runtime, "__cudaRegisterFatBinary");
    }
    return real ? real(w) : &handle;
}
#endif
