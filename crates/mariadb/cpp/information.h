/*
  See information.cc.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/
#ifndef HIGHWATER_INFORMATION_H
#define HIGHWATER_INFORMATION_H

namespace highwater {

/* What the server calls with each of the plugins for INFORMATION_SCHEMA. */
int init_transactions(void *place);
int init_locks(void *place);
int init_metrics(void *place);

}  // namespace highwater
#endif
