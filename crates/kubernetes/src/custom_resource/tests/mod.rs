mod metadata;
mod values;
