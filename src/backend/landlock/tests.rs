//! What lowering and reading promise, each denial beside a twin that passes.
