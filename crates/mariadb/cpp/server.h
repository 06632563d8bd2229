/*
  The server's headers, in the order that they need.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/
#ifndef HIGHWATER_SERVER_HEADERS_H
#define HIGHWATER_SERVER_HEADERS_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include <mysql/plugin.h>
#include "sql_priv.h"
#include "sql_class.h"
#include "sql_show.h"
#include "sql_table.h"
#include "sql_lex.h"
#include "field.h"
#include "handler.h"
#include "key.h"
#include "log.h"
#include "sql_type.h"
#include "table.h"

#endif
