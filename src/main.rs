//! The `caro` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    caro::cli::main()
}
