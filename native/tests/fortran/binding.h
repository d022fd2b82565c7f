! What differs between the three bindings, to be included where the others have their USE.
#if defined(BINDING_F08)
#define REQUEST type(MPI_Request)
#define COMM type(MPI_Comm)
#define GROUP type(MPI_Group)
#define STATUS type(MPI_Status)
#define ONE_STATUS(name) name
#define MANY_STATUSES(name, many) name(many)
#define SOURCE_OF(status) status%MPI_SOURCE
#define TAG_OF(status) status%MPI_TAG
#define STATUS_AT(statuses, at) statuses(at)
#define NUMBER(handle) handle%MPI_VAL
#else
#define REQUEST integer
#define COMM integer
#define GROUP integer
#define STATUS integer
#define ONE_STATUS(name) name(MPI_STATUS_SIZE)
#define MANY_STATUSES(name, many) name(MPI_STATUS_SIZE, many)
#define SOURCE_OF(status) status(MPI_SOURCE)
#define TAG_OF(status) status(MPI_TAG)
#define STATUS_AT(statuses, at) statuses(:, at)
#define NUMBER(handle) handle
#endif
