mod definition;
mod list_errors;
mod spec_errors;
