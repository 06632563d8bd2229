/*
  Reports to the server about lock waits.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/

/*
  Transactions that apply a log in parallel commit in its order. One that holds a lock which an earlier one needs, and
  waits for that one's commit, would wait for ever: the server is told of each wait, and ends the later one, which starts
  again. A group commit that waits for more transactions continues when the plugin reports that a transaction waits for a lock of the group.

  Rules
  1. While a connection has a transaction, its locks have an owner here. It leaves before its transaction is forgotten by
     the server, so that the server's reports are about transactions that are there.
  2. What holds a lock may change during a wait: a thread that applies begins its wait anew, and says again whom for,
     after a moment.
*/
#include "ha_highwater.h"
#include <mutex>
#include <unordered_map>

extern "C" int thd_need_wait_reports(const THD *thd);
extern "C" int thd_rpl_deadlock_check(THD *thd, THD *other);

namespace highwater {

static std::mutex owners_mutex;
static std::unordered_map<uint64_t, THD *> owners;

void enter_owner(THD *thd, Connection *connection) {
  if (!thd_need_wait_reports(thd)) return;
  uint64_t owner = hw_lock_owner(connection->session);
  if (connection->owner == owner) return;
  leave_owner(thd, connection);
  std::lock_guard<std::mutex> guard(owners_mutex);
  owners[owner] = thd;
  connection->owner = owner;
}

void leave_owner(THD *thd, Connection *connection) {
  if (!connection->owner) return;
  std::lock_guard<std::mutex> guard(owners_mutex);
  auto found = owners.find(connection->owner);
  /* It may be another's already: the engine knew sooner that the transaction has ended. */
  if (found != owners.end() && found->second == thd) owners.erase(found);
  connection->owner = 0;
}

void report_waits(THD *thd, const uint64_t *waited_for, size_t count) {
  if (!thd || !thd_need_wait_reports(thd)) return;
  std::lock_guard<std::mutex> guard(owners_mutex);
  for (size_t i = 0; i < count; i++) {
    auto found = owners.find(waited_for[i]);
    if (found != owners.end() && found->second != thd) thd_rpl_deadlock_check(thd, found->second);
  }
}

bool waits_on(THD *thd, uint *waits) {
  if (!thd->rgi_slave || thd_kill_level(thd) != THD_IS_NOT_KILLED) return false;
  return ++*waits * applying_wait_ms <= lock_wait_seconds(thd) * 1000;
}

}  // namespace highwater
