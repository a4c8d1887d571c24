//! The `caro` binary.

fn main() -> std::process::ExitCode {
    caro::cli::main()
}
