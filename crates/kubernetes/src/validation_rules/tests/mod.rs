mod definition;
mod keywords;
mod list_errors;
mod spec_errors;
