/*
  Several threads that apply the log of another server in parallel.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/

/*
  Such transactions commit in the order of the log. One that holds a lock which an earlier one needs, and waits for that
  one's commit, would wait for ever: the server must be told of such waits, and ends the later one.

  Rule: who holds a lock is the engine's secret. A thread that has waited for a moment names all others that apply: the
  server ends those that are later, and they start again. That is more than need be, and seldom.
*/
#include "ha_highwater.h"
#include <algorithm>
#include <mutex>

extern "C" int thd_rpl_deadlock_check(THD *thd, THD *other);

namespace highwater {

static std::mutex applying_mutex;
static std::vector<THD *> applying;

void begin_applying(THD *thd, Connection *connection) {
  if (!thd->rgi_slave || connection->is_applying) return;
  std::lock_guard<std::mutex> guard(applying_mutex);
  applying.push_back(thd);
  connection->is_applying = true;
}

void end_applying(Connection *connection, THD *thd) {
  if (!connection->is_applying) return;
  std::lock_guard<std::mutex> guard(applying_mutex);
  applying.erase(std::remove(applying.begin(), applying.end(), thd), applying.end());
  connection->is_applying = false;
}

bool waits_on(THD *thd, uint *waits) {
  if (!thd->rgi_slave || thd_kill_level(thd) != THD_IS_NOT_KILLED) return false;
  if (++*waits * applying_wait_ms > lock_wait_seconds(thd) * 1000) return false;
  std::lock_guard<std::mutex> guard(applying_mutex);
  for (THD *other : applying)
    if (other != thd) thd_rpl_deadlock_check(thd, other);
  return true;
}

}  // namespace highwater
