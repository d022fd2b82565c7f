/* Memory that the CPU must not touch, as a device's is: pages without access, except while the MPI is in a call.
 *
 * The library calls PMPI_* only, and its references are resolved in the program first: this program's own functions of
 * these names open the pages, hand on to the MPI's, and close them. Any access by the library itself is a crash. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "case.h"

enum { TAG = 91, FAR_TAG = 30091, PARTITIONS = 4, STARTS = 4, MAX_EAGER_BYTES = 1000, DEVICE_BYTES = 1 << 20 };

static unsigned char *device; /* mapped while a case of this family runs */

static void set_access(int protection) {
  if (device && mprotect(device, DEVICE_BYTES, protection) != 0) abort();
}

void open_device(void) { set_access(PROT_READ | PROT_WRITE); }

void close_device(void) { set_access(PROT_NONE); }

#define EXPORTED __attribute__((visibility("default")))
#define DURING(name, ...)                                                \
  do {                                                                   \
    __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    if (!next) abort();                                                  \
    if (!device) return next(__VA_ARGS__);                               \
    open_device();                                                       \
    const int code = next(__VA_ARGS__);                                  \
    close_device();                                                      \
    return code;                                                         \
  } while (0)

EXPORTED int PMPI_Pack(const void *data, int count, MPI_Datatype type, void *packed, int size, int *at, MPI_Comm comm) {
  note_packed();
  DURING(PMPI_Pack, data, count, type, packed, size, at, comm);
}

EXPORTED int PMPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
  note_message(data, count, comm, false);
  DURING(PMPI_Irecv, data, count, type, source, tag, comm, request);
}

EXPORTED int PMPI_Unpack(const void *packed, int size, int *at, void *data, int count, MPI_Datatype type, MPI_Comm comm) {
  DURING(PMPI_Unpack, packed, size, at, data, count, type, comm);
}

EXPORTED int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status) { DURING(PMPI_Test, request, flag, status); }

EXPORTED int PMPI_Wait(MPI_Request *request, MPI_Status *status) { DURING(PMPI_Wait, request, status); }

static unsigned char *map_device(void) {
  void *mapped = mmap(NULL, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) abort();
  return mapped;
}

/* From rank 0 to rank 1, out of device memory or into it; the other side has host memory. First starts without canonical tags
 * whose receiver is behind are sent from copies, and large messages of types with gaps from packed ones. Later starts may travel in
 * memory that the two ranks share. */
static void transfer(const struct context *context, struct shape shape, size_t span, int tag, bool from_device, bool is_behind) {
  unsigned char *mapped = map_device(), *host = malloc(span);
  MPI_Request request;
  const bool sends = context->rank == 0, is_device = sends == from_device;
  unsigned char *buffer = is_device ? mapped : host;
  if (!sends && is_behind) MPI(MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, context->world, MPI_STATUS_IGNORE));
  if (sends)
    MPI(MPI_Psend_init(buffer, shape.num_partitions, shape.count, shape.type, 1, tag, context->world, MPI_INFO_NULL, &request));
  else MPI(MPI_Precv_init(buffer, shape.num_partitions, shape.count, shape.type, 0, tag, context->world, MPI_INFO_NULL, &request));
  /* The system reads large messages, which it finds closed. */
  const int num_starts = span <= MAX_EAGER_BYTES || shape.type != MPI_BYTE ? STARTS : 1;
  for (int start = 1; start <= num_starts; start++) {
    memset(buffer, sends ? start : 0, span);
    if (is_device) {
      device = mapped;
      close_device();
    }
    MPI(MPI_Start(&request));
    if (sends) pready_all(request, shape.num_partitions, RANDOM, 1);
    if (sends && is_behind && start == 1) MPI(MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, context->world));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (is_device) {
      open_device();
      device = NULL;
    }
    if (!sends)
      EXPECT(buffer[0] == start && buffer[span - 1] == start, "the first and last bytes are %d and %d instead of %d", buffer[0],
             buffer[span - 1], start);
  }
  MPI(MPI_Request_free(&request));
  munmap(mapped, DEVICE_BYTES);
  free(host);
}

static void first_start(const struct context *context) {
  if (context->rank > 1) return;
  transfer(context, (struct shape){PARTITIONS, 100, MPI_BYTE}, PARTITIONS * 100, FAR_TAG, true, true);
  transfer(context, (struct shape){PARTITIONS, 100000, MPI_BYTE}, PARTITIONS * 100000, FAR_TAG, true, true);
  transfer(context, (struct shape){PARTITIONS, 100, MPI_BYTE}, PARTITIONS * 100, TAG, false, false);
}

static void gaps(const struct context *context) {
  MPI_Datatype gapped;
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  /* Packed by the MPI in an eager message, and packed before. */
  for (int count = 50; count <= 10000; count *= 200)
    for (int tag = TAG; tag <= FAR_TAG && context->rank < 2; tag += FAR_TAG - TAG)
      for (int from_device = 0; from_device < 2; from_device++)
        transfer(context, (struct shape){PARTITIONS, count, gapped}, (size_t)PARTITIONS * (size_t)count * 3 * sizeof(int), tag,
                 from_device, false);
  MPI(MPI_Type_free(&gapped));
}

const struct test_case memory_cases[] = {
    {"memory_of_a_device_is_read_by_the_mpi_alone_in_a_first_start", first_start, 0},
    {"memory_of_a_device_with_gaps_is_packed_and_unpacked_by_the_mpi_alone", gaps, 0},
    {0},
};
