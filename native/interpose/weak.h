/* Every symbol of the MPI is a weak reference, so that the library can be loaded where no MPI is (a shell that starts
 * ranks, under LD_BIND_NOW too) and does nothing there. Included before all else; a test asks the built library for
 * references that were forgotten. */
#ifndef EB_WEAK_H
#define EB_WEAK_H

#pragma weak PMPI_Abort
#pragma weak PMPI_Session_finalize
#pragma weak PMPI_Session_init
#pragma weak PMPI_Finalize
#pragma weak PMPI_Add_error_code
#pragma weak PMPI_Add_error_string
#pragma weak PMPI_Allreduce
#pragma weak PMPI_Bcast
#pragma weak PMPI_Cancel
#pragma weak PMPI_Cart_create
#pragma weak PMPI_Cart_sub
#pragma weak PMPI_Comm_call_errhandler
#pragma weak PMPI_Comm_create
#pragma weak PMPI_Comm_create_from_group
#pragma weak PMPI_Comm_create_group
#pragma weak PMPI_Comm_create_keyval
#pragma weak PMPI_Comm_delete_attr
#pragma weak PMPI_Comm_dup
#pragma weak PMPI_Comm_dup_with_info
#pragma weak PMPI_Comm_free
#pragma weak PMPI_Comm_free_keyval
#pragma weak PMPI_Comm_get_attr
#pragma weak PMPI_Comm_get_errhandler
#pragma weak PMPI_Comm_group
#pragma weak PMPI_Comm_idup
#pragma weak PMPI_Comm_idup_with_info
#pragma weak PMPI_Comm_rank
#pragma weak PMPI_Comm_remote_group
#pragma weak PMPI_Comm_remote_size
#pragma weak PMPI_Comm_set_attr
#pragma weak PMPI_Comm_set_errhandler
#pragma weak PMPI_Comm_size
#pragma weak PMPI_Comm_split
#pragma weak PMPI_Comm_split_type
#pragma weak PMPI_Comm_test_inter
#pragma weak PMPI_Dist_graph_create
#pragma weak PMPI_Dist_graph_create_adjacent
#pragma weak PMPI_Errhandler_free
#pragma weak PMPI_File_get_errhandler
#pragma weak PMPI_Gather
#pragma weak PMPI_Gatherv
#pragma weak PMPI_Get_count
#pragma weak PMPI_Get_library_version
#pragma weak PMPI_Graph_create
#pragma weak PMPI_Group_free
#pragma weak PMPI_Group_incl
#pragma weak PMPI_Group_size
#pragma weak PMPI_Group_translate_ranks
#pragma weak PMPI_Improbe
#pragma weak PMPI_Info_get
#pragma weak PMPI_Init
#pragma weak PMPI_Init_thread
#pragma weak PMPI_Intercomm_create
#pragma weak PMPI_Intercomm_create_from_groups
#pragma weak PMPI_Intercomm_merge
#pragma weak PMPI_Iprobe
#pragma weak PMPI_Irecv
#pragma weak PMPI_Isend
#pragma weak PMPI_Mrecv
#pragma weak PMPI_Pack
#pragma weak PMPI_Query_thread
#pragma weak PMPI_Recv
#pragma weak PMPI_Recv_init
#pragma weak PMPI_Reduce
#pragma weak PMPI_Request_free
#pragma weak PMPI_Request_get_status
#pragma weak PMPI_Request_get_status_all
#pragma weak PMPI_Request_get_status_any
#pragma weak PMPI_Request_get_status_some
#pragma weak PMPI_Send
#pragma weak PMPI_Send_init
#pragma weak PMPI_Start
#pragma weak PMPI_Startall
#pragma weak PMPI_Status_set_cancelled
#pragma weak PMPI_Status_set_elements_x
#pragma weak PMPI_Test
#pragma weak PMPI_Testall
#pragma weak PMPI_Testany
#pragma weak PMPI_Testsome
#pragma weak PMPI_Type_commit
#pragma weak PMPI_Type_contiguous
#pragma weak PMPI_Type_free
#pragma weak PMPI_Type_get_contents
#pragma weak PMPI_Type_get_envelope
#pragma weak PMPI_Type_get_envelope_c
#pragma weak PMPI_Type_get_extent
#pragma weak PMPI_Type_size
#pragma weak PMPI_Type_size_x
#pragma weak PMPI_Unpack
#pragma weak PMPI_Wait
#pragma weak PMPI_Waitall
#pragma weak PMPI_Waitany
#pragma weak PMPI_Waitsome

/* Functions in Open MPI. */
#pragma weak PMPI_Comm_f2c
#pragma weak PMPI_Info_f2c
#pragma weak PMPI_Request_c2f
#pragma weak PMPI_Request_f2c
#pragma weak PMPI_Type_f2c

/* Open MPI's predefined handles and callbacks are addresses. */
#pragma weak OMPI_C_MPI_COMM_NULL_COPY_FN
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_char
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_errhandler_null
#pragma weak ompi_mpi_errors_return
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_int
#pragma weak ompi_mpi_int64_t
#pragma weak ompi_mpi_op_max
#pragma weak ompi_mpi_op_min
#pragma weak ompi_mpi_op_sum
#pragma weak ompi_request_null

#endif
