/* load LIBRARY [FUNCTION | FUNCTION:SIZE]…
 * Loads a library and calls functions without arguments: prints the int that FUNCTION returns, or SIZE bytes
 * in hex at the address that it returns.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    for (int i = 2; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        int size = colon ? atoi(colon + 1) : 0;
        if (colon) *colon = 0;
        void *function = dlsym(library, argv[i]);
        if (!function) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        printf("%s ", argv[i]);
        if (!colon) printf("%d", ((int (*)(void))function)());
        else {
            unsigned char *bytes = ((unsigned char *(*)(void))function)();
            for (int j = 0; j < size; j++) printf("%02x", bytes[j]);
        }
        printf("\n");
    }
    return 0;
}
