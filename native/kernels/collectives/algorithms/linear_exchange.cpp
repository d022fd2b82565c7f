// Posts all receives first, and copies the rank's own block while messages are in flight.
#include "kernels/collectives/algorithms/linear_exchange.hpp"

#include <cstring>

namespace earlybird {

namespace {

// Takes the message of a rank to itself out of the others.
LinearExchange::Message split(const std::vector<LinearExchange::Message> &all, int own,
                              std::vector<LinearExchange::Message> &others) {
  LinearExchange::Message to_itself{own, nullptr, 0};
  for (const LinearExchange::Message &message : all) {
    if (message.peer == own) to_itself = message;
    else if (message.size_bytes > 0) others.push_back(message);
  }
  return to_itself;
}

}  // namespace

LinearExchange::LinearExchange(Team &team, MPI_Comm comm, const std::vector<Message> &sends, const std::vector<Message> &receives)
    : team_(team), comm_(comm) {
  own_send_ = split(sends, team.rank(), sends_);
  own_receive_ = split(receives, team.rank(), receives_);
  requests_.resize(sends_.size() + receives_.size());
}

void LinearExchange::run() {
  std::size_t k = 0;
  for (const Message &message : receives_)
    MPI_Irecv(message.data, message.size_bytes, MPI_BYTE, message.peer, tag, comm_, &requests_[k++]);
  for (const Message &message : sends_)
    MPI_Isend(message.data, message.size_bytes, MPI_BYTE, message.peer, tag, comm_, &requests_[k++]);
  if (own_send_.size_bytes > 0) std::memcpy(own_receive_.data, own_send_.data, static_cast<std::size_t>(own_send_.size_bytes));
  team_.wait(requests_.data(), static_cast<int>(requests_.size()));
}

}  // namespace earlybird
