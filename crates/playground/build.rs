//! Sets the stack size of the WebAssembly module, which has no threads with a large stack.

/// Size of the stack in the module's memory, in bytes. The default is 1 MiB.
const STACK_BYTES: u32 = 16 * 1024 * 1024;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={STACK_BYTES}");
    }
}
