# The target `earlybird_recorder`: what `earlybird record` preloads. Like `earlybird`, not linked with the MPI.
add_library(earlybird_recorder SHARED
  interpose/objects/fortran_bindings.c
  interpose/objects/identity.c
  interpose/objects/symbols.c
  partitioned/process/clock.c
  recorder/calls/buffers.c
  recorder/calls/collectives.c
  recorder/calls/completion.c
  recorder/calls/creation.c
  recorder/calls/files.c
  recorder/calls/lifecycle.c
  recorder/calls/matched.c
  recorder/calls/neighbours.c
  recorder/calls/partitioned.c
  recorder/calls/receives.c
  recorder/calls/request_status.c
  recorder/calls/requests.c
  recorder/calls/rma.c
  recorder/calls/sendrecv.c
  recorder/calls/sends.c
  recorder/calls/sessions.c
  recorder/calls/windows.c
  recorder/recording/agent.c
  recorder/recording/arrivals.c
  recorder/recording/awaited.c
  recorder/recording/call.c
  recorder/recording/communicators.c
  recorder/recording/epoch.c
  recorder/recording/file.c
  recorder/recording/hidden.c
  recorder/recording/identity.c
  recorder/recording/mpi_files.c
  recorder/recording/page.c
  recorder/recording/persistent.c
  recorder/recording/places.c
  recorder/recording/python_places.c
  recorder/recording/recorder.c
  recorder/recording/requests.c
  recorder/recording/samples.c
  recorder/recording/settings.c
  recorder/recording/shared_memory.c
  recorder/recording/table.c
  recorder/recording/thread_sites.c
  recorder/recording/trace.c
  recorder/recording/windows.c
  recorder/recording/write.c
  recorder/threads/events.c
  recorder/threads/known.c
  recorder/threads/regions.c
  recorder/threads/waits.c)
# Calls that take longer than what is recorded of them; more optimisation takes twice as long to compile.
foreach(calls IN ITEMS collectives creation files neighbours windows)
  set_property(SOURCE recorder/calls/${calls}.c APPEND PROPERTY COMPILE_OPTIONS -O1)
endforeach()
foreach(property IN ITEMS COMPILE_OPTIONS C_EXTENSIONS INCLUDE_DIRECTORIES LINK_LIBRARIES LINK_OPTIONS)
  get_target_property(value earlybird ${property})
  set_target_properties(earlybird_recorder PROPERTIES ${property} "${value}")
endforeach()
target_compile_definitions(earlybird_recorder PRIVATE _GNU_SOURCE EB_PARTITIONED_COUNT=${EB_PARTITIONED_COUNT}
  $<$<BOOL:${HAS_LARGE_COUNT}>:EB_HAS_LARGE_COUNT>
  $<$<BOOL:${HAS_ISENDRECV}>:EB_HAS_ISENDRECV>
  $<$<BOOL:${HAS_PERSISTENT_COLLECTIVES}>:EB_HAS_PERSISTENT_COLLECTIVES>
  $<$<BOOL:${HAS_SESSIONS}>:EB_HAS_SESSIONS>
  $<$<BOOL:${HAS_IDUP_WITH_INFO}>:EB_HAS_IDUP_WITH_INFO>
  $<$<BOOL:${HAS_BUFFER_FLUSH}>:EB_HAS_BUFFER_FLUSH>
  $<$<BOOL:${HAS_REQUEST_GET_STATUS_ALL}>:EB_HAS_REQUEST_GET_STATUS_ALL>)
install(TARGETS earlybird_recorder LIBRARY DESTINATION lib)
# What the first rank of a node starts.
add_executable(page_agent recorder/agent/page_agent.c)
set_target_properties(page_agent PROPERTIES C_EXTENSIONS ON)
target_compile_options(page_agent PRIVATE -Wall -Wextra)
target_compile_definitions(page_agent PRIVATE _GNU_SOURCE)
target_include_directories(page_agent PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
install(TARGETS page_agent RUNTIME DESTINATION libexec/earlybird)
