/* Tells MPIs apart by their symbols, never by their names: an ABI has many. */
#include "interpose/objects/identity.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What we are compiled for, for messages. Intel MPI defines MPICH's names too. */
#if defined(MPI_ABI)
#define OUR_MPI "the MPI standard's own ABI"
#elif defined(I_MPI_VERSION)
#define OUR_MPI "Intel MPI"
#elif defined(OPEN_MPI)
#define OUR_MPI "Open MPI"
#elif defined(MPICH_VERSION)
#define OUR_MPI "MPICH"
#else
#define OUR_MPI "another MPI"
#endif

/* The longest of all MPIs' version strings: Open MPI allows 256 bytes, MPICH 8192, and each fills what it allows. */
#define VERSION_BYTES 16384

typedef enum {
  KIND_UNKNOWN,
  KIND_MPICH,   /* handles are numbers: the ABI of libmpi.so.12, also Intel MPI's, Cray's, MVAPICH's, ParaStation's */
  KIND_OPENMPI, /* handles are addresses of the library's data: also HPC-X, Spectrum MPI, Fujitsu MPI, Bull's */
  KIND_STANDARD, /* the ABI of libmpi_abi.so (MPI 5.0, chapter 20): handles are pointers, the predefined ones small numbers */
} kind;

#if defined(MPI_ABI)
static const kind our_kind = KIND_STANDARD;
#elif defined(OPEN_MPI)
static const kind our_kind = KIND_OPENMPI;
#else
static const kind our_kind = KIND_MPICH;
#endif

/* By what the macros of each <mpi.h> expand to: every program of the kind needs these symbols. Those of the standard's ABI
 * expand to numbers; its functions are in MPIs of the other kinds, too. */
static kind kind_of(const eb_object *mpi) {
  if (eb_object_defines(mpi, "ompi_mpi_comm_world") && eb_object_defines(mpi, "ompi_request_null")) return KIND_OPENMPI;
  if (eb_object_defines(mpi, "MPIR_Dup_fn") && eb_object_defines(mpi, "MPI_UNWEIGHTED")) return KIND_MPICH;
  return eb_object_defines(mpi, "PMPI_Abi_get_version") ? KIND_STANDARD : KIND_UNKNOWN;
}

static const eb_object *mpi_in(const eb_objects *objects) { return eb_objects_at(objects, dlsym(RTLD_DEFAULT, "PMPI_Init")); }

const char *eb_identity_mpi_path(const eb_objects *objects) {
  const eb_object *mpi = mpi_in(objects);
  return mpi && !mpi->is_program ? mpi->path : "";
}

/* The length of the path up to its last slash, without a folder for one kind of the library, as Intel MPI has. */
static size_t folder_length(const char *path) {
  static const char *const kinds[] = {"/release", "/debug", "/release_mt", "/debug_mt"};
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t)(slash - path) : 0;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    const size_t kind_length = strlen(kinds[k]);
    if (length > kind_length && strncmp(path + length - kind_length, kinds[k], kind_length) == 0) return length - kind_length;
  }
  return length;
}

bool eb_identity_shares_folder(const char *path, const char *other) {
  char *resolved = realpath(path, NULL), *other_resolved = realpath(other, NULL);
  bool shares = false;
  if (resolved && other_resolved) {
    const size_t length = folder_length(other_resolved);
    /* Open MPI's plug-ins lie below. */
    shares = length > 0 && strncmp(resolved, other_resolved, length) == 0 && resolved[length] == '/';
  }
  free(resolved);
  free(other_resolved);
  return shares;
}

bool eb_identity_fortran_passes_by(void) { return our_kind != KIND_MPICH; }

static void read_version(char version[VERSION_BYTES]) {
  int length;
  int (*ask)(char *, int *) = (int (*)(char *, int *))dlsym(RTLD_DEFAULT, "PMPI_Get_library_version");
  snprintf(version, VERSION_BYTES, "another MPI");
  if (ask) (void)ask(version, &length);
  version[strcspn(version, "\n,")] = '\0';
}

/* Was the MPI loaded after the library? The loader looks up its functions, and Open MPI's handles, which are data, when it
 * loads the library. To test this, no called function may be compared with NULL: that would bind its address permanently. */
static bool is_late;

/* For example, Python's mpi4py loads its MPI later and with local visibility. This function makes it visible, so that the
 * loader finds each function at its first call, except in a process that binds all functions at start. */
static bool show_late_mpi(const eb_objects *objects) {
  for (size_t o = 0; o < objects->num; o++)
    if (eb_object_defines(&objects->at[o], "PMPI_Init"))
      return dlopen(objects->at[o].path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != NULL;
  return false;
}

/* musl knows no other way. */
static bool binds_at_once(void) {
#if defined(__GLIBC__)
  const char *bind_now = getenv("LD_BIND_NOW");
  return bind_now && *bind_now;
#else
  return true;
#endif
}

bool eb_identity_can_be_called(const eb_objects *objects) {
  is_late = dlsym(RTLD_DEFAULT, "PMPI_Init") == NULL;
  if (is_late && !show_late_mpi(objects)) {
    fprintf(stderr, "earlybird: cannot find the MPI library of this process; run it with `earlybird exec --no-interpose`\n");
    return false;
  }
  if (is_late && binds_at_once()) {
    fprintf(stderr, "earlybird: LD_BIND_NOW is set, but this program loads its MPI at run time: unset LD_BIND_NOW, or run "
                    "the program with `earlybird exec --no-interpose`\n");
    return false;
  }
  const eb_object *mpi = mpi_in(objects);
  /* A program of one kind for which the other was preloaded: calls and handles would go to different MPIs. Two that were not
   * preloaded know of each other: one translates to the other. */
  const char *preloaded = getenv("LD_PRELOAD");
  for (size_t o = 0; o < objects->num; o++) {
    const eb_object *other = &objects->at[o];
    if (!mpi || other == mpi || other->is_program || !eb_object_defines(other, "PMPI_Init")) continue;
    if (kind_of(other) == KIND_UNKNOWN || kind_of(other) == kind_of(mpi) || !preloaded || !strstr(preloaded, mpi->path)) continue;
    fprintf(stderr,
            "earlybird: this process has two MPIs, %s and %s, whose handles differ; select the program's MPI with "
            "`earlybird exec --mpi`\n",
            mpi->path, other->path);
    return false;
  }
  /* A program that contains its MPI shows no more of it than libraries ask for, but then its <mpi.h> is that MPI's. */
  if (!mpi || mpi->is_program || kind_of(mpi) == our_kind) return true;
  const bool is_standard = kind_of(mpi) == KIND_STANDARD;
  char version[VERSION_BYTES];
  read_version(version);
  fprintf(stderr, "earlybird: this process runs %.60s%s, but libearlybird was built for %s: their handles differ; %s\n", version,
          is_standard ? " with the MPI standard's own ABI" : "", OUR_MPI,
          is_standard ? "write `earlybird exec` directly before its launcher, or preload libearlybird_abi.so instead"
                      : "select the build with `earlybird exec --mpi`, or link with the build for this MPI");
  return false;
}

/* Called for ourselves and not only for the program, which could not have been linked either. */
static bool is_lacking(const char *name, void *self) {
  return strncmp(name, "PMPI_", strlen("PMPI_")) == 0 && !eb_object_defines(self, name + 1) && !dlsym(RTLD_DEFAULT, name);
}

bool eb_identity_is_complete(const eb_object *self, bool says) {
  if (our_kind == KIND_OPENMPI && is_late) {
    if (says)
      fprintf(stderr, "earlybird: this program loads Open MPI at run time: the MPI's own partitioned communication is used; to use "
                      "libearlybird's, preload Open MPI's libmpi.so.40 after libearlybird.so\n");
    return false;
  }
  const char *name = eb_object_referred(self, is_lacking, (void *)self);
  if (!name) return true;
  char version[VERSION_BYTES];
  read_version(version);
  if (says)
    fprintf(stderr,
            "earlybird: this process runs %.60s, which has no %s: the MPI's own partitioned communication is used; "
            "select the build with `earlybird exec --mpi`, or build libearlybird for this MPI\n",
            version, name);
  return false;
}
