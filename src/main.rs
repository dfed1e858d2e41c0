fn main() -> std::process::ExitCode {
    onrush::cli::main()
}
