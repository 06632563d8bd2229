//! The `highwater` command as a process: one program of tests, since each one links the engine.

mod backup;
mod changes;
mod command;
mod data_device;
mod device;
mod dump;
mod encryption;
mod file_systems;
mod lab;
mod log_device;
mod look;
mod metrics;
mod outputs;
mod prepared;
mod probe;
mod read_only;
mod salvage;
mod shell;
mod system_calls;
