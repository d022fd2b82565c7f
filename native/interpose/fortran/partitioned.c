/* Fortran's partitioned calls, for an MPI that has none: as `mpif.h` has them in MPI 4, handles as INTEGER.
 *
 * Spelled as most compilers do it, in lower case with an underscore. Only the calls that an older MPI lacks are here; all
 * others are its own, which bindings.c leads to us.
 */
#include <dlfcn.h>

#include "interpose/interpose.h"

/* Functions in Open MPI, casts in MPICH. */
#if defined(OPEN_MPI)
#define F2C(kind, handle) PMPI_##kind##_f2c(handle)
#define REQUEST_C2F(handle) PMPI_Request_c2f(handle)
#else
#define F2C(kind, handle) MPI_##kind##_f2c(handle)
#define REQUEST_C2F(handle) MPI_Request_c2f(handle)
#endif

/* Which compilers take for .true.: gfortran, flang and nvfortran what is not 0, Intel's what is odd. */
enum { FALSE, TRUE };

/* MPI_BOTTOM is a variable in a common block: Open MPI's own, or the first one of a block of MPICH. */
static void *address_of(void *buffer) {
  static const char *const blocks[] = {"mpi_fortran_bottom_", "mpipriv1_"};
  for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
    if (buffer == dlsym(RTLD_DEFAULT, blocks[b])) return MPI_BOTTOM;
  return buffer;
}

EB_EXPORT void mpi_psend_init_(void *buf, MPI_Fint *partitions, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *dest, MPI_Fint *tag,
                               MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror) {
  MPI_Request made;
  *ierror = MPI_Psend_init(address_of(buf), *partitions, *count, F2C(Type, *datatype), *dest, *tag, F2C(Comm, *comm),
                           F2C(Info, *info), &made);
  if (*ierror == MPI_SUCCESS) *request = REQUEST_C2F(made);
}

EB_EXPORT void mpi_precv_init_(void *buf, MPI_Fint *partitions, MPI_Count *count, MPI_Fint *datatype, MPI_Fint *source,
                               MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror) {
  MPI_Request made;
  *ierror = MPI_Precv_init(address_of(buf), *partitions, *count, F2C(Type, *datatype), *source, *tag, F2C(Comm, *comm),
                           F2C(Info, *info), &made);
  if (*ierror == MPI_SUCCESS) *request = REQUEST_C2F(made);
}

EB_EXPORT void mpi_pready_(MPI_Fint *partition, MPI_Fint *request, MPI_Fint *ierror) {
  *ierror = MPI_Pready(*partition, F2C(Request, *request));
}

EB_EXPORT void mpi_pready_range_(MPI_Fint *low, MPI_Fint *high, MPI_Fint *request, MPI_Fint *ierror) {
  *ierror = MPI_Pready_range(*low, *high, F2C(Request, *request));
}

EB_EXPORT void mpi_pready_list_(MPI_Fint *length, MPI_Fint *partitions, MPI_Fint *request, MPI_Fint *ierror) {
  *ierror = MPI_Pready_list(*length, partitions, F2C(Request, *request));
}

EB_EXPORT void mpi_parrived_(MPI_Fint *request, MPI_Fint *partition, MPI_Fint *flag, MPI_Fint *ierror) {
  int arrived;
  *ierror = MPI_Parrived(F2C(Request, *request), *partition, &arrived);
  if (*ierror == MPI_SUCCESS) *flag = arrived ? TRUE : FALSE;
}
