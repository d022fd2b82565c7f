/* Tells of a rank and of every process above it whether libearlybird is in its memory or in its environment. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file_has(int pid, const char *name, const char *wanted)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return 0;
    static char text[1 << 22];
    size_t length = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    text[length] = '\0';
    for (const char *at = text; at < text + length; at += strlen(at) + 1) /* environ has zeros between its entries */
        if (strstr(at, wanted) != NULL && (strcmp(name, "environ") != 0 || strncmp(at, "LD_PRELOAD=", 11) == 0))
            return 1;
    return 0;
}

static int is_reached(int pid)
{
    return file_has(pid, "maps", "libearlybird.so") || file_has(pid, "environ", "libearlybird.so");
}

static int parent_of(int pid, char *name)
{
    char path[64], line[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *stream = fopen(path, "r");
    if (stream == NULL || fgets(line, sizeof line, stream) == NULL)
        exit(3);
    fclose(stream);
    char *end = strrchr(line, ')');
    *end = '\0';
    strcpy(name, strchr(line, '(') + 1);
    sscanf(end + 1, " %*c %d", &parent);
    return parent;
}

int main(int argc, char **argv)
{
    int rank, size;
    char host[256], name[512];
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return 2;
    gethostname(host, sizeof host);
    const char *stats = getenv("EARLYBIRD_TEST_NOTE"), *preload = getenv("LD_PRELOAD");
    char line[8192];
    int length = snprintf(line, sizeof line, "rank=%d|size=%d|host=%s|reached=%d|note=%s|preload=%s|arguments=", rank, size,
                          host, file_has((int)getpid(), "maps", "libearlybird.so"), stats ? stats : "",
                          preload ? preload : "");
    for (int k = 1; k < argc; k++)
        length += snprintf(line + length, sizeof line - length, "%s%s", k > 1 ? " " : "", argv[k]);
    length += snprintf(line + length, sizeof line - length, "|above=");
    for (int pid = parent_of((int)getpid(), name); pid > 1;) {
        int parent = parent_of(pid, name);
        length += snprintf(line + length, sizeof line - length, "%s:%d ", name, is_reached(pid));
        pid = parent;
    }
    snprintf(line + length, sizeof line - length, "\n");
    fputs(line, stdout);
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 2;
}
