-- A profile of sysbench, named by the variable PROFILE, whose clients number their transactions: the number is in the client's row of the
-- table "acknowledged" with the transaction, and in the file ACKNOWLEDGED.CLIENT once the commit was acknowledged.

require(os.getenv("PROFILE"))

local begin_transaction, commit_transaction, connect = begin, commit, thread_init
local number, file

function thread_init()
   connect()
   number = tonumber(con:query_row("SELECT number FROM acknowledged WHERE client = " .. sysbench.tid))
   file = assert(io.open(os.getenv("ACKNOWLEDGED") .. "." .. sysbench.tid, "a"))
end

function begin()
   begin_transaction()
   number = number + 1
   con:query("UPDATE acknowledged SET number = " .. number .. " WHERE client = " .. sysbench.tid)
end

function commit()
   commit_transaction()
   file:write(number, ";\n")
   file:flush()
end
