/* A project's program: sends four partitions from rank 0 to rank 1, and tells whose MPI_Psend_init that was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <earlybird.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                      \
    do {                                 \
        if ((call) != MPI_SUCCESS) {     \
            fprintf(stderr, "%s\n", #call); \
            return 1;                    \
        }                                \
    } while (0)

enum { PARTITIONS = 4, COUNT = 1000 };

int main(int argc, char **argv)
{
    static int values[PARTITIONS * COUNT];
    int rank, wrong = 0;
    MPI_Request request;
    CHECK(MPI_Init(&argc, &argv));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) {
        CHECK(MPI_Psend_init(values, PARTITIONS, COUNT, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        CHECK(MPI_Start(&request));
        for (int k = PARTITIONS - 1; k >= 0; k--) {
            for (int i = 0; i < COUNT; i++)
                values[k * COUNT + i] = k * COUNT + i;
            CHECK(MPI_Pready(k, request));
        }
    } else {
        CHECK(MPI_Precv_init(values, PARTITIONS, COUNT, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        CHECK(MPI_Start(&request));
    }
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(MPI_Request_free(&request));
    for (int i = 0; i < PARTITIONS * COUNT; i++)
        wrong += values[i] != i;
    Dl_info found;
    if (dladdr(dlsym(RTLD_DEFAULT, "MPI_Psend_init"), &found) == 0)
        return 1;
    printf("wrong=%d from=%s\n", wrong, strrchr(found.dli_fname, '/') + 1);
    CHECK(MPI_Finalize());
    return 0;
}
